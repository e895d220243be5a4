"""The history of values that a job keeps, over the API."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from jsonschema import Draft202012Validator
from rest_framework.test import APIClient

from api.rows import make_node, make_olt, make_olt_value, make_onu
from facho.onus.models import Onu
from facho.onus.value_history import save_olt_history, save_onu_history
from facho.polling.domain.collection import OltValue
from facho.polling.vendors.index import Place
from facho.snmp_jobs.models import SnmpJobOid
from onu_tables import Told, table_of

OID = "1.3.6.1.4.1.9.1"
OLT, ONU = "olts/{olt_id}/data/history/", "onus/{onu_id}/data/history/"
HOUR = timedelta(hours=1)


@pytest.fixture
def onu(db: None) -> Onu:
    """An ONU and its OLT, of which two values each were kept."""
    olt = make_olt(vendor="huawei_smartax")
    onu = make_onu(olt, (0, 1, 0, 1))
    make_olt_value(olt, "board.cpu", oid=OID, index="0.1", place="0/1", unit="percent")
    SnmpJobOid.objects.create(job=make_node(olt).job, oid=OID, name="Errors", unit="frames", keeps_history=True)
    for number, ago in ((10, 2 * HOUR), (20, HOUR)):
        now = timezone.now() - ago
        value = OltValue(OID, "0.1", "board.cpu", "0/1", str(number), "percent", str(number))
        save_olt_history(olt.id, [value], now=now)
        save_onu_history(olt.id, table_of(Told(Place(0, 1, 0, 1), {}, {OID: str(number + 5)})), {OID}, now=now)
    return onu


def address(path: str, onu: Onu) -> str:
    return "/api/v1/" + path.format(olt_id=onu.olt_id, onu_id=onu.id)


def test_a_value_of_an_olt_has_a_history_with_name_and_unit(viewer: APIClient, onu: Onu) -> None:
    body = viewer.get(f"{address(OLT, onu)}?oid={OID}&index=0.1").json()

    assert (body["name"], body["unit"], body["place"], body["resolution"]) == ("board.cpu", "percent", "0/1", "full")
    assert [point["value"] for point in body["points"]] == [10.0, 20.0]


def test_a_value_of_an_onu_has_a_history_with_name_and_unit(viewer: APIClient, onu: Onu) -> None:
    body = viewer.get(f"{address(ONU, onu)}?oid={OID}&resolution=hour").json()

    assert (body["name"], body["unit"]) == ("Errors", "frames")
    assert [point["max"] for point in body["points"]] == [15.0, 25.0]


def test_what_nobody_keeps_is_an_empty_series(viewer: APIClient, onu: Onu) -> None:
    assert viewer.get(f"{address(OLT, onu)}?oid=1.3.6.1&index=0.1").json()["points"] == []
    assert viewer.get(f"{address(OLT, onu)}?oid={OID}").json()["points"] == []
    assert viewer.get(f"{address(ONU, onu)}?oid=1.3.6.1").json()["points"] == []


@pytest.mark.parametrize("path", [OLT, ONU])
def test_what_cannot_be_meant_is_refused(anonymous: APIClient, viewer: APIClient, onu: Onu, path: str) -> None:
    assert [error["field"] for error in viewer.get(address(path, onu)).json()["errors"]] == ["oid"]
    assert viewer.get(f"{address(path, onu)}?oid={OID}&from=2000-01-01&resolution=full").status_code == 400
    assert viewer.get(f"{address(path, onu)}?oid=%00").status_code == 400
    assert viewer.get("/api/v1/" + path.format(olt_id=999_999, onu_id=999_999) + "?oid=1.3").status_code == 404
    assert anonymous.get(address(path, onu)).status_code == 401


@pytest.mark.parametrize("path", [OLT, ONU])
def test_every_answer_is_as_the_document_says(
    viewer: APIClient, onu: Onu, path: str, django_assert_max_num_queries: Callable[[int], AbstractContextManager[Any]]
) -> None:
    document = viewer.get("/api/v1/schema/?format=json").json()

    with django_assert_max_num_queries(8):
        body = viewer.get(f"{address(path, onu)}?oid={OID}{'&index=0.1' if path == OLT else ''}").json()

    success = document["paths"][f"/api/v1/{path}"]["get"]["responses"]["200"]["content"]["application/json"]
    Draft202012Validator({**success["schema"], "components": document["components"]}).validate(body)
