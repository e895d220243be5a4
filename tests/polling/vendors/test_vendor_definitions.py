"""What every shipped definition promises to the rest of the system."""

import re
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import facho
from facho.polling.domain.execution_state import QueryType
from facho.polling.vendors.decoders import DECODERS
from facho.polling.vendors.definition import CostClass, Definition, Job, Polling, Recognition, Refusal, Table
from facho.polling.vendors.loader import load_definitions
from facho.polling.vendors.vocabulary import VOCABULARIES, Confidence, Cost, Scope, Unit

SOURCE = Path(facho.__file__).parent
FAMILIES = sorted(set(load_definitions()) - {"generic"})
# What they tell is known well enough to ask for all of it.
WELL_KNOWN = ["fiberhome_an5516", "huawei_smartax", "vsol_gpon_v1600g", "zte_c300_c320", "zte_c600_titan"]
WORDS_OF = {
    "onu.run_state": "RunState",
    "onu.last_down_cause": "DownCause",
    "onu.phase_state": "PhaseState",
    "board.status": "BoardState",
    "pon.status": "LinkState",
    "if.oper": "LinkState",
    "fan.status": "PartState",
}
# Texts and numbers that hardly ever change, and a count that the list itself tells.
LEFT_OUT = {
    "board.description",
    "board.ports",
    "board.serial",
    "board.type_code",
    "pon.admin_state",
    "pon.autofind_count",
    "pon.description",
    "pon.name",
}
UNITS_OF = {
    "onu.rx_power": Unit.DBM,
    "onu.tx_power": Unit.DBM,
    "onu.olt_rx_power": Unit.DBM,
    "onu.distance": Unit.METRE,
    "onu.temperature": Unit.CELSIUS,
    "onu.voltage": Unit.VOLT,
    "board.cpu": Unit.PERCENT,
    "board.memory": Unit.PERCENT,
    "board.temperature": Unit.CELSIUS,
    "chassis.temperature": Unit.CELSIUS,
    "pon.tx_power": Unit.DBM,
    "pon.in_octets": Unit.BYTE,
    "if.in_octets": Unit.BYTE,
}


@pytest.fixture(params=load_definitions())
def found(request: pytest.FixtureRequest) -> Definition:
    return load_definitions()[request.param]


@pytest.fixture(params=FAMILIES)
def family(request: pytest.FixtureRequest) -> Definition:
    return load_definitions()[request.param]


def test_every_file_of_the_folder_is_shipped() -> None:
    files = sorted(file.stem for file in (SOURCE / "polling/vendors/definitions").iterdir())

    assert sorted(load_definitions()) == files


def test_family_tells_its_onus_apart_and_how_they_are(family: Definition) -> None:
    assert family.identity_columns()
    assert family.has_column("onu.run_state")
    assert family.has_column("onu.rx_power")


@pytest.mark.parametrize("key", WELL_KNOWN)
def test_well_known_family_has_what_every_reader_of_onus_needs(key: str) -> None:
    needed = {"onu.serial", "onu.description", "onu.run_state", "onu.last_down_cause", "onu.distance", "onu.rx_power"}

    assert needed <= set(load_definitions()[key].columns)


def test_key_means_the_same_words_and_unit_on_every_family(family: Definition) -> None:
    for key, words in WORDS_OF.items():
        if family.has_column(key):
            assert {type(word).__name__ for word in family.column(key).rule.words.values()} == {words}
    for key, unit in UNITS_OF.items():
        if family.has_column(key):
            assert family.column(key).unit is unit


def test_key_begins_with_what_its_table_is_about(family: Definition) -> None:
    for scope in (Scope.ONU, Scope.BOARD):
        assert all(column.key.startswith(f"{scope}.") for column in family.columns_of(scope))


def test_ready_made_jobs_carry_the_specified_slugs_and_chain(family: Definition) -> None:
    jobs = {job.slug: job for job in family.jobs}

    texts = ["descripcion"] if {"onu.description", "onu.name"} & set(family.columns) else []
    assert list(jobs)[: 3 + len(texts)] == ["descubrimiento", *texts, "estado", "potencia"]
    assert jobs["descubrimiento"].query_type is QueryType.DISCOVERY
    assert jobs["descubrimiento"].columns[:1] == family.identity_columns()
    assert {jobs[slug].chain_of for slug in (*texts, "estado")} == {"descubrimiento"}
    assert jobs["estado"].columns[0] == "onu.run_state"


def test_who_waits_is_listed_with_every_discovery_where_the_family_tells_it(family: Definition) -> None:
    slugs = [job.slug for job in family.jobs]

    assert ("por_autorizar" in slugs) == family.has_column("autofind.serial")
    if "por_autorizar" in slugs:
        job = family.job("por_autorizar")
        assert (job.chain_of, job.columns[-1].split(".")[0]) == ("descubrimiento", "autofind")


def test_what_an_olt_tells_of_itself_is_read_by_a_ready_made_job(family: Definition) -> None:
    """Identity apart: that is asked for by hand, and by a recording."""
    reported = {key for job in family.jobs for key in job.columns}
    about_olt = {
        column.key
        for column in family.columns.values()
        if column.index.scope in (Scope.BOARD, Scope.PART, Scope.PON, Scope.INTERFACE, Scope.SCALAR)
    }

    assert about_olt - reported <= LEFT_OUT


def test_live_optics_are_a_master_at_a_safe_pace(family: Definition) -> None:
    job = family.job("potencia")

    assert job.chain_of is None
    assert {family.column(key).cost for key in job.columns} == {Cost.LIVE}
    assert job.interval_seconds >= family.safe_interval_seconds(job.columns) >= 1800


def test_what_is_asked_of_each_onu_and_hardly_changes_is_asked_once_a_day(family: Definition) -> None:
    live = [job for job in family.jobs if family.cost_of(job.columns) is Cost.LIVE]

    assert {job.slug for job in live} <= {"potencia", "inventario"}
    assert all(job.chain_of is None for job in live)
    assert all(job.interval_seconds >= 86_400 for job in live if job.slug == "inventario")


def test_one_request_in_flight_unless_a_definition_says_more(found: Definition) -> None:
    assert found.polling.in_flight == 1


def test_live_reads_get_more_time_and_fewer_tries(family: Definition) -> None:
    live, state = family.polling.classes[Cost.LIVE], family.polling.classes[Cost.STATE]

    assert live.timeout_seconds > state.timeout_seconds
    assert live.tries < state.tries
    assert live.min_interval_seconds > state.min_interval_seconds


def test_who_is_online_is_reported_by_a_cheap_column(family: Definition) -> None:
    """Live columns are read of those only who are, so asking for that must not be dear itself."""
    assert not [column.key for column in family.readings("onu.run_state") if column.cost is Cost.LIVE]


def test_whatever_a_definition_says_of_polling_is_obeyed() -> None:
    unread = [field.name for field in fields(Polling) if not re.search(rf"\bpolling\.{field.name}\b", _readers())]

    assert not unread


@pytest.mark.parametrize("part", [Recognition, CostClass, Table, Job, Refusal])
def test_whatever_a_definition_holds_is_read(part: type[Any]) -> None:
    assert not [field.name for field in fields(part) if not re.search(rf"\.{field.name}\b", _readers())]


@cache
def _readers() -> str:
    """Return the product's code but for what fills definitions."""
    return "\n".join(file.read_text("utf-8") for file in SOURCE.rglob("*.py") if file.name != "loader.py")


def test_uncertain_column_says_why() -> None:
    cause = load_definitions()["zte_c300_c320"].column("onu.last_down_cause")

    assert cause.confidence is Confidence.LOW
    assert "disagree" in cause.note


def test_ability_to_gasp_is_no_cause() -> None:
    """A capture of a Calix has "yes" there for each of 206 ONTs that work."""
    family, dying_gasp = load_definitions()["calix_axos"], (1, 3, 6, 1, 4, 1, 6321, 1, 2, 4, 2, 6, 1, 1, 5)

    assert not family.has_column("onu.last_down_cause")
    assert dying_gasp not in {column.oid for column in family.columns.values()}


def test_generic_definition_knows_standard_objects_only() -> None:
    generic = load_definitions()["generic"]

    assert {column.oid[:6] for column in generic.columns.values()} == {(1, 3, 6, 1, 2, 1)}
    assert generic.decode_index((1, 1)) is None
    assert generic.column("sys.uptime").instance(generic.indexes["scalar"].decode((0,))) == (1, 3, 6, 1, 2, 1, 1, 3, 0)


def test_discovery_walks_what_its_job_names_else_the_best_that_tells_onus_apart() -> None:
    huawei, generic = load_definitions()["huawei_smartax"], load_definitions()["generic"]

    assert huawei.identity_columns() == huawei.identity_columns(["onu.model"]) == ("onu.serial",)
    assert huawei.identity_columns(["onu.mac", "onu.serial"]) == ("onu.serial", "onu.mac")
    assert huawei.identity_columns(["onu.mac"]) == ("onu.mac",)
    assert generic.identity_columns() == ()


def test_unknown_job_is_a_key_error(family: Definition) -> None:
    with pytest.raises(KeyError):
        family.job("nothing")


def test_guide_names_every_definition_decoder_and_vocabulary() -> None:
    guide = (Path(__file__).parents[3] / "docs" / "vendors.md").read_text("utf-8")

    for name in (*load_definitions(), *DECODERS, *VOCABULARIES):
        assert f"`{name}`" in guide
