"""Words in any order, telephone numbers by their digits, codes in any notation; by index on either database."""

import pytest
from django.db import connection

from api.rows import make_olt, make_onu
from facho.onus import search
from facho.onus.models import Onu, OnuCustomer
from facho.onus.search import FoundOnus, of_model, of_tag, of_text

pytestmark = pytest.mark.django_db


@pytest.fixture
def ana() -> Onu:
    """The customer who is looked for, among others."""
    olt = make_olt()
    other = make_onu(olt, (0, 1, 1, 1), serial="ZTEGC0FFEE00", mac="00:00:5E:00:53:01", model="F601")
    OnuCustomer.objects.create(onu=other, label="Luz Mora", phone="601 222 0000", address="Calle 9", tags="vip-norte")
    onu = make_onu(
        olt, (0, 1, 1, 2), serial="HWTC12345678", mac="00:1B:44:11:3A:B7", description="Torre Sur", model="HG8310M"
    )
    OnuCustomer.objects.create(
        onu=onu,
        label="Ana Pérez",
        phone="(310) 555-12 34",
        address="Calle 10 # 4-21",
        contract="C-0077",
        tags="vip, sur",
    )
    return onu


def found(text: str) -> list[Onu]:
    return FoundOnus([of_text(text)])[:10]


@pytest.mark.parametrize(
    "typed",
    [
        "perez ana",
        "ana calle",
        "calle 10 ana",
        "pérez torre",
        "3105551234",
        "310 555 1234",
        "310-555",
        "5551234",
        "+57 310 5551234",
        "31 05 55 12 34",
        "HWTC-1234-5678",
        "HWTC 12345678",
        "hwtc:12345678",
        "4857544312345678",
        "48 57 54 43 12 34 56 78",
        "001b.4411.3ab7",
        "001b44113ab7",
        "1B4411",
        "b4411",
        "C-0077",
        "hg8310",
    ],
)
def test_a_customer_is_found_as_people_type(ana: Onu, typed: str) -> None:
    assert found(typed) == [ana]


@pytest.mark.parametrize("typed", ["perez luz", "3105551235", "HWTC-1234-5679", "calle 11", "ana 9"])
def test_every_word_must_be_there(ana: Onu, typed: str) -> None:
    assert found(typed) == []


def test_words_that_many_have_are_found_together(ana: Onu, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "MANY", 1)
    third = make_onu(ana.olt, (0, 1, 1, 3), serial="FHTT00000001")
    OnuCustomer.objects.create(onu=third, label="Ana Mora", address="Avenida 3")

    assert found("calle ana") == [ana]


def test_a_tag_is_found_whole(ana: Onu) -> None:
    assert FoundOnus([of_tag("VIP")])[:10] == [ana]
    assert FoundOnus([of_tag("sur")])[:10] == [ana]
    assert FoundOnus([of_tag("norte")])[:10] == []


def test_a_model_is_found_by_a_part_of_it(ana: Onu) -> None:
    assert FoundOnus([of_model("g8310")])[:10] == [ana]


@pytest.mark.parametrize("typed", ['"', '""" OR', "a:b NEAR(", "ana*", "{label}: x", "-----", "'; DROP TABLE x; --"])
def test_signs_of_a_query_are_only_text(ana: Onu, typed: str) -> None:
    assert found(f"{typed}   zzz") == []


def test_what_is_changed_or_deleted_is_searched_as_it_is_now(ana: Onu) -> None:
    OnuCustomer.objects.filter(onu=ana).update(phone="320 999 8877")
    assert found("3209998877") == [ana]
    assert found("3105551234") == []

    Onu.objects.filter(pk=ana.pk).update(description="Edificio Norte")
    assert found("edificio") == [ana]
    assert found("torre") == []

    Onu.objects.filter(pk=ana.pk).delete()
    assert found("edificio") == []


def test_sqlite_asks_its_text_tables_and_reads_no_other(ana: Onu) -> None:
    if connection.vendor != "sqlite":
        return
    with connection.cursor() as cursor:
        cursor.execute(
            "EXPLAIN QUERY PLAN SELECT rowid FROM onu_customer_text_index WHERE onu_customer_text_index MATCH %s",
            ['{label} : "ana"'],
        )
        ways = [row[3] for row in cursor.fetchall()]
        # A later migration that makes a table anew drops its triggers: it has to make them again.
        cursor.execute("SELECT name FROM sqlite_master WHERE type = 'trigger' ORDER BY name")
        triggers = [row[0] for row in cursor.fetchall()]

    assert len(ways) == 1
    assert "VIRTUAL TABLE INDEX" in ways[0]
    assert triggers == [
        f"{index}_{act}"
        for index in ("onu_customer_text_index", "onu_text_index")
        for act in ("added", "changed", "deleted")
    ]
