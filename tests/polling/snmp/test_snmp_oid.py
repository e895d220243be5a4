"""Object identifiers as text and as places in a tree."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facho.polling.snmp.oid import SYS_DESCR, format_oid, is_under, parse_oid, suffix_of


@given(st.lists(st.integers(0, 2**32 - 1), max_size=126))
def test_an_oid_survives_its_text(tail: list[int]) -> None:
    oid = (1, 3, *tail)

    assert parse_oid(format_oid(oid)) == oid


def test_a_leading_dot_is_welcome() -> None:
    assert parse_oid(".1.3.6.1.2.1.1.1.0") == SYS_DESCR


@pytest.mark.parametrize(
    "text",
    [
        "",
        ".",
        "1",
        "1..3",
        "1.3.",
        "1.3.-6",
        "1.3.sysDescr",
        "1.3.4294967296",
        "1.40",
        "3.1",
        "1.3.٦",
        " 1.3",
        ".".join(["1"] * 129),
    ],
)
def test_what_is_no_oid_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="OID"):
        parse_oid(text)


def test_a_subtree_does_not_hold_its_root_nor_its_neighbour() -> None:
    assert is_under((1, 3, 6, 1), (1, 3, 6))
    assert not is_under((1, 3, 6), (1, 3, 6))
    assert not is_under((1, 3, 61), (1, 3, 6))


def test_the_suffix_is_what_follows_the_column() -> None:
    assert suffix_of((1, 3, 6, 7, 8), (1, 3, 6)) == (7, 8)
    with pytest.raises(ValueError, match="not under"):
        suffix_of((1, 3, 7, 8), (1, 3, 6))
