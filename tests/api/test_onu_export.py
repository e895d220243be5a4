"""ONUs as a file: the same ONUs as on the pages, safe in a spreadsheet, and never all in memory."""

import csv
import io
import json
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.test import AsyncClient
from rest_framework.test import APIClient

from api.rows import make_olt, make_onu, make_user
from facho.api import onus as api_onus
from facho.onus import search
from facho.onus.models import OnuCustomer

pytestmark = pytest.mark.django_db


@pytest.fixture
def batches(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Export in twos, and tell how many ONUs each query brought."""
    sizes: list[int] = []
    plain = search.FoundOnus.in_batches

    def counted(found: search.FoundOnus, size: int) -> Any:
        for batch in plain(found, size):
            sizes.append(len(batch))
            yield batch

    monkeypatch.setattr(api_onus, "BATCH", 2)
    monkeypatch.setattr(search.FoundOnus, "in_batches", counted)
    return sizes


@pytest.fixture
def fleet() -> None:
    olt = make_olt("North")
    for number in range(5):
        make_onu(olt, (0, 1, 0, number), serial=f"AAAA{number}", run_state="online", rx_power_cdbm=-2345)
    other = make_onu(make_olt("South"), serial="BBBB1", description="=cmd|' /C calc'!A0")
    OnuCustomer.objects.create(onu=other, label="Ana\nLuz", phone="+1 555", tags="a, b")


def exported(query: str) -> str:
    """Fetch a file as the product serves it: asynchronously, part by part."""

    async def fetch() -> str:
        client = AsyncClient()
        await client.aforce_login(user)
        answer: Any = await client.get(f"/api/v1/onus/export/{query}")
        assert answer.status_code == 200
        return b"".join([part async for part in answer.streaming_content]).decode()

    user = make_user()
    return async_to_sync(fetch)()


def test_a_file_has_all_that_were_found_batch_by_batch(fleet: None, batches: list[int]) -> None:
    rows = list(csv.DictReader(io.StringIO(exported("?format=csv&olt=North"))))

    assert [row["serial"] for row in rows] == ["AAAA0", "AAAA1", "AAAA2", "AAAA3", "AAAA4"]
    assert (rows[0]["rx_power_dbm"], rows[0]["is_present"], rows[0]["absent_since"]) == ("-23.45", "true", "")
    assert batches == [2, 2, 1]


def test_no_cell_is_a_formula(fleet: None) -> None:
    (row,) = csv.DictReader(io.StringIO(exported("?search=BBBB1")))

    assert row["description"] == "'=cmd|' /C calc'!A0"
    assert (row["label"], row["phone"], row["tags"]) == ("Ana\nLuz", "'+1 555", "a, b")


def test_a_file_of_json_has_the_rows_of_the_pages(fleet: None, batches: list[int], viewer: APIClient) -> None:
    rows = json.loads(exported("?format=json"))

    assert rows == sorted(viewer.get("/api/v1/onus/").json()["results"], key=lambda row: row["id"])


@pytest.mark.parametrize(("kind", "expected"), [("json", "[]\n"), ("csv", ",".join(api_onus.CSV_COLUMNS) + "\n")])
def test_nobody_found_is_an_empty_file(kind: str, expected: str) -> None:
    assert exported(f"?format={kind}") == expected


def test_a_wrong_question_gets_no_file(viewer: APIClient) -> None:
    answer = viewer.get("/api/v1/onus/export/?format=csv&search=x")

    assert answer.status_code == 400
    assert json.loads(answer.content)["errors"][0]["field"] == "search"


def test_a_stranger_gets_no_file(anonymous: APIClient) -> None:
    assert anonymous.get("/api/v1/onus/export/").status_code == 401
