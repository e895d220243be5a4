"""Lists of ONUs on PostgreSQL: each order and each text has its index, and a server without trigrams still finds."""

import importlib

import pytest
from django.db import connection
from django.db.models import QuerySet

from api.rows import make_olt, make_onu
from facho.onus.models import Onu, OnuCustomer
from facho.onus.search import CUSTOMER_TEXTS, ONU_TEXTS, SORTS, FoundOnus, of_text

pytestmark = [pytest.mark.django_db, pytest.mark.postgresql]

migration = importlib.import_module("facho.onus.migrations.0002_search_indexes")


def plan(rows: "QuerySet[Onu] | QuerySet[OnuCustomer]", *shunned: str) -> str:
    """Return the way that the database takes when it shuns what costs little with the few rows of a test."""
    with connection.cursor() as cursor:
        for way in ("seqscan", *shunned):
            cursor.execute(f"SET LOCAL enable_{way} = off")
    return rows.explain()


@pytest.mark.parametrize("sign", ["", "-"])
@pytest.mark.parametrize("name", [name for name in SORTS if name != "place"])
def test_an_index_has_the_order_to_its_last_column(name: str, sign: str) -> None:
    way = plan(FoundOnus([], sign + name)._sorted().values("pk")[:50], "sort")

    assert "Sort" not in way


@pytest.mark.parametrize("field", ONU_TEXTS)
def test_a_part_of_a_text_is_found_by_its_trigrams(field: str) -> None:
    assert "onu_texts" in plan(Onu.objects.filter(**{f"{field}__has": "abc"}), "indexscan")


@pytest.mark.parametrize("field", CUSTOMER_TEXTS)
def test_a_part_of_a_customers_text_is_found_by_its_trigrams(field: str) -> None:
    assert "onu_customer_texts" in plan(OnuCustomer.objects.filter(**{f"{field}__has": "abc"}), "indexscan")


def test_a_server_that_forbids_trigrams_is_searched_without() -> None:
    onu = make_onu(make_olt(), description="roof")
    with connection.cursor() as cursor:
        cursor.execute("DROP EXTENSION pg_trgm CASCADE")
        cursor.execute("CREATE ROLE nobody_special")
        cursor.execute("SET LOCAL ROLE nobody_special")

        with connection.schema_editor() as editor:
            migration.index_texts(editor)

        cursor.execute("RESET ROLE")
    assert FoundOnus([of_text("ROO")])[:10] == [onu]
