"""Reviewing a definition that is being written: all its faults in one look, and what it leaves out."""

from importlib.resources import files
from pathlib import Path

import pytest
import yaml

from facho.polling.vendors.loader import load_definitions
from facho.polling.vendors.review import MOST_FAULTS, Gap, Review, review_file, review_text

FOLDER = files("facho.polling.vendors") / "definitions"
FAMILIES = sorted(load_definitions())


def small() -> dict[str, object]:
    """A definition of one table, complete enough to load."""
    cost = {"timeout_seconds": 5, "retries": 1, "min_interval_seconds": 300}
    return {
        "key": "acme",
        "brand": "Acme",
        "title": "Acme One",
        "confidence": "low",
        "recognition": {"prefixes": ["1.3.6.1.4.1.99999"]},
        "indexes": {"onu": {"scope": "onu", "components": ["slot", "port", "onu"]}},
        "tables": {
            "onu": {
                "oid": "1.3.6.1.4.1.99999.1.1",
                "index": "onu",
                "cost": "config",
                "columns": {
                    "onu.serial": {"id": 1, "type": "OctetString", "decoder": "gpon_sn_text"},
                    "onu.rx_power": {"id": 2, "type": "Integer32", "unit": "dBm", "scale": 0.01, "cost": "live"},
                },
            }
        },
        "polling": {
            "max_repetitions": 10,
            "max_varbinds": 4,
            "classes": {name: dict(cost) for name in ("config", "state", "counter", "live")},
        },
        "jobs": [
            {
                "slug": "descubrimiento",
                "name": "Discover",
                "query_type": "discovery",
                "interval_seconds": 600,
                "columns": ["onu.serial"],
            }
        ],
    }


def reviewed(**changes: object) -> Review:
    return review_text(yaml.safe_dump({**small(), **changes}), "acme.yaml")


def reported(review: Review) -> list[str]:
    return [str(fault) for fault in review.faults]


@pytest.mark.parametrize("key", FAMILIES)
def test_a_definition_that_loads_has_no_fault(key: str) -> None:
    found = review_text((FOLDER / f"{key}.yaml").read_text(), f"{key}.yaml")

    assert reported(found) == []
    assert found.definition == load_definitions()[key]


def test_every_fault_is_reported_at_once_with_file_and_key() -> None:
    tables = small()["tables"]
    assert isinstance(tables, dict)
    tables["onu"]["columns"]["onu.distance"] = {"id": 3, "type": "Integer"}
    tables["onu"]["columns"]["onu.model"] = {"id": 4, "type": "OctetString", "scael": 2, "uint": "m"}
    jobs = [{"slug": "a"}, *small()["jobs"], {"slug": "b", "name": "B", "query_type": "gett"}]  # type: ignore[misc]

    found = reviewed(tables=tables, jobs=jobs, confidence="sure", recognition={"description": "("})

    assert found.definition is None
    assert reported(found) == [
        "acme.yaml: confidence: 'sure' is not one of high, medium, low",
        "acme.yaml: tables.onu.columns.onu.distance.type: 'Integer' is not one of Integer32, Counter32, Counter64,"
        " Gauge32, TimeTicks, OctetString, ObjectIdentifier",
        "acme.yaml: tables.onu.columns.onu.model.scael: unknown key",
        "acme.yaml: tables.onu.columns.onu.model.uint: unknown key",
        "acme.yaml: recognition.prefixes: is missing",
        "acme.yaml: recognition.otherwise: is missing",
        "acme.yaml: jobs[0].name: is missing",
        "acme.yaml: jobs[2].query_type: 'gett' is not one of discovery, get, walk, table, bulk",
    ]


def test_what_follows_from_a_fault_is_not_reported_as_another() -> None:
    indexes = {"onu": {"scope": "onu", "learned_from": "onu.serial", "names": ["{slot}/{port}:{onu}"]}}
    tables = small()["tables"]
    assert isinstance(tables, dict)
    tables["onu"]["columns"]["onu.serial"]["decoder"] = "gpon"
    tables["onu"]["columns"]["onu.name"] = {"id": 1, "type": "OctetString", "shares": "onu.serial"}

    found = reviewed(tables=tables, indexes=indexes)

    assert [fault.path for fault in found.faults] == ["tables.onu.columns.onu.serial.decoder"]


@pytest.mark.parametrize(
    "part",
    ["key", "brand", "title", "confidence", "recognition", "indexes", "tables", "polling", "jobs", "notifications"],
)
@pytest.mark.parametrize("content", [None, 7, [], {}, {"what": 1}, ["what"]])
def test_any_part_may_be_nonsense(part: str, content: object) -> None:
    found = reviewed(**{part: content})

    assert len(found.faults) <= MOST_FAULTS
    assert found.definition is None or not found.faults


@pytest.mark.parametrize("key", FAMILIES)
def test_a_definition_without_any_one_key_is_reviewed_to_its_end(key: str) -> None:
    data = yaml.safe_load((FOLDER / f"{key}.yaml").read_text())

    for part in list(data):
        left = {name: value for name, value in data.items() if name != part}
        found = review_text(yaml.safe_dump(left), f"{key}.yaml")
        if part not in ("notes", "notifications"):
            assert found.faults[0].problem == "is missing", part


def test_a_fault_of_the_notifications_hides_no_other() -> None:
    message = {"said": [{"meaning": "onu_lost", "base": "1.3.6", "names": {1: "lost"}}]}

    found = reviewed(brand=7, notifications=message)

    assert {fault.path for fault in found.faults} == {"brand", "notifications.said[0].meaning"}


def test_a_file_that_is_not_yaml_has_one_fault() -> None:
    found = review_text("key: [", "acme.yaml")

    assert len(found.faults) == 1
    assert str(found.faults[0]).startswith("acme.yaml: the file: ")


def test_the_name_of_the_file_is_its_key(tmp_path: Path) -> None:
    file = tmp_path / "other.yaml"
    file.write_text(yaml.safe_dump(small()))

    assert reported(review_file(file)) == ["other.yaml: key: 'acme' does not match the name of the file"]
    assert reported(review_file(tmp_path / "none.yaml")) == [
        "none.yaml: the file: cannot be read: No such file or directory"
    ]


def test_what_a_definition_leaves_out_is_listed() -> None:
    found = reviewed()

    assert reported(found) == []
    assert found.gaps[:2] == (Gap.RUN_STATE, Gap.LAST_DOWN_CAUSE)
    assert Gap.RX_POWER not in found.gaps
    assert found.unread == ("onu.rx_power",)


def test_a_definition_that_finds_no_onus_lacks_more() -> None:
    generic = load_definitions()["generic"]

    gaps = Review(generic).gaps

    assert gaps[:3] == (Gap.RECOGNITION, Gap.IDENTITY, Gap.DISCOVERY)
