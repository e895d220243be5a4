"""Lists of ONUs on PostgreSQL: each order and each text has its index, and a server without trigrams still finds."""

import importlib
from functools import reduce
from operator import or_
from typing import Any

import pytest
from django.db import connection
from django.db.models import QuerySet

from api.rows import make_olt, make_onu
from facho.onus.models import Onu, OnuCustomer, OnuReading
from facho.onus.search import CUSTOMER_TEXTS, ONU_TEXTS, SORTS, FoundOnus, Wording, _any_has, of_text
from facho.onus.words import RunStateChoice

pytestmark = [pytest.mark.django_db, pytest.mark.postgresql]

CUSTOMER_INDEXES = {"contract": "onu_customer_more_texts", "phone_digits": "onu_customer_more_texts"}
migration = importlib.import_module("facho.onus.migrations.0001_squashed_0003_raw_values_in_blocks")


def plan(rows: "QuerySet[Any]", *shunned: str) -> str:
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


@pytest.mark.parametrize("state", [state for state in RunStateChoice.values if state != RunStateChoice.ONLINE])
def test_states_of_few_have_an_index_with_the_order_of_their_light(state: str) -> None:
    readings = OnuReading.objects.filter(run_state=state).order_by("rx_power_cdbm", "onu_id")

    way = plan(readings.values("pk")[:50], "sort")

    assert "onu_reading_state" in way
    assert "Sort" not in way


def test_light_of_onus_online_is_in_one_index() -> None:
    """Every index with the light of an ONU online is written by every poll."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT indexdef FROM pg_indexes WHERE tablename = 'onus_onureading'")
        with_light = [definition for (definition,) in cursor.fetchall() if "rx_power_cdbm" in definition]

    assert sorted("WHERE" in definition for definition in with_light) == [False, True]
    assert any("run_state)::text <> 'online'" in definition for definition in with_light)


@pytest.mark.parametrize("field", ONU_TEXTS)
def test_a_part_of_a_text_is_found_by_its_trigrams(field: str) -> None:
    index = "onu_model_texts" if field == "model" else "onu_texts"
    assert index in plan(Onu.objects.filter(**{f"{field}__has": "abc"}), "indexscan")


@pytest.mark.parametrize("field", [*CUSTOMER_TEXTS, "phone_digits"])
def test_a_part_of_a_customers_text_is_found_by_its_trigrams(field: str) -> None:
    assert CUSTOMER_INDEXES.get(field, "onu_customer_texts") in plan(
        OnuCustomer.objects.filter(**{f"{field}__has": "abc"}), "indexscan"
    )


@pytest.mark.parametrize("text", ["perez", "310 555 1234", "HWTC-1234"])
def test_whatever_is_typed_is_asked_of_indexes_alone(text: str) -> None:
    words = [Wording(word) for word in text.split()]

    for word in words:
        for model, ways in ((Onu, word.of_onu), (OnuCustomer, word.of_customer)):
            condition = reduce(or_, (_any_has(*way) for way in ways))
            assert "Seq Scan" not in plan(model.objects.filter(condition), "indexscan")


def test_an_address_is_looked_up_by_its_index() -> None:
    # Unordered: the order is by tables joined, and which of them comes first depends on what was analysed meanwhile.
    found = Onu.objects.filter(mac__in=["00:1B:44:11:3A:B7"]).exclude(mac="").order_by()

    assert "onu_mac" in plan(found, "bitmapscan")


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
