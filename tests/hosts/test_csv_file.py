"""CSV files of the inventory, good and bad."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facho.hosts.csv import read_entries, write_entries
from facho.hosts.inventory import InventoryError
from facho.hosts.olt_entry import OltEntry
from facho.infrastructure.secrets import Secret

HEADER = b"name,host,port,vendor,version,community\n"


def problems_of(content: bytes) -> list[tuple[int | None, str]]:
    try:
        _, problems = read_entries(content)
    except InventoryError as error:
        problems = list(error.problems)
    return [(problem.line, problem.reason) for problem in problems]


def test_a_row_becomes_an_entry_with_its_line() -> None:
    ((entry,), problems) = read_entries(HEADER + b"centro,10.0.0.1,1161,huawei,2c,secret\n")

    assert problems == []
    assert entry == OltEntry("centro", "10.0.0.1", "1161", "huawei", "2c", Secret("secret"))
    assert entry.line == 2


def test_columns_may_come_in_any_order_and_with_a_byte_order_mark() -> None:
    content = "\ufeffHost, Name ,community,version,vendor,port\n10.0.0.1,peñón,s,,,\n".encode()

    ((entry,), _) = read_entries(content)

    assert (entry.name, entry.host, entry.community) == ("peñón", "10.0.0.1", Secret("s"))


@pytest.mark.parametrize("separator", [b";", b"\t"])
def test_what_separates_the_header_separates_the_rows(separator: bytes) -> None:
    row = separator.join([b"'=Lima, centro", b"10.0.0.1", b"", b"", b"2c", b"s"])

    ((entry,), problems) = read_entries(b"\xef\xbb\xbf\r\n" + HEADER.replace(b",", separator) + row + b"\r\n")

    assert problems == []
    assert (entry.name, entry.host, entry.community) == ("=Lima, centro", "10.0.0.1", Secret("s"))


def test_snmpv3_has_further_columns() -> None:
    header = HEADER.strip() + b",v3_user,v3_auth_protocol,v3_auth_key,v3_priv_protocol,v3_priv_key\n"

    ((entry,), _) = read_entries(header + b"centro,10.0.0.1,,,3,,noc,SHA,auth-key,AES,priv-key\n")

    assert (entry.v3_user, entry.v3_auth_key, entry.v3_priv_key) == ("noc", Secret("auth-key"), Secret("priv-key"))


def test_spaces_around_text_go_and_those_of_a_secret_stay() -> None:
    ((entry,), _) = read_entries(HEADER + b" centro , 10.0.0.1 ,,,, s \n")

    assert (entry.name, entry.host, entry.community) == ("centro", "10.0.0.1", Secret(" s "))


def test_a_blank_line_is_no_row_and_counts_as_a_line() -> None:
    entries, problems = read_entries(HEADER + b"\n,,,,,\nuno,h,,,,s\r\n\r\n")

    assert problems == []
    assert [(entry.name, entry.line) for entry in entries] == [("uno", 4)]


def test_a_row_over_several_lines_is_named_by_its_first() -> None:
    entries, _ = read_entries(HEADER + b'"a\nb",h,,,,s\ndos,h,,,,s\n')

    assert [entry.line for entry in entries] == [2, 4]


@pytest.mark.parametrize("content", [b"", b"\n\n", b"\xef\xbb\xbf", b"  \n"])
def test_an_empty_file_is_named_as_such(content: bytes) -> None:
    assert problems_of(content) == [(None, "the file is empty")]


@pytest.mark.parametrize(
    "header",
    [
        b"name,host\n",
        b"name;host,port;vendor;version;community\n",
        HEADER.strip() + b",color\n",
        HEADER.strip() + b",name\n",
        b"centro,10.0.0.1,161,huawei,2c,public\n",
    ],
)
def test_a_wrong_header_is_reported_with_the_right_one(header: bytes) -> None:
    ((line, reason),) = problems_of(header + b"centro,10.0.0.1,,,,s\n")

    assert line == 1
    assert "name,host,port,vendor,version,community" in reason


def test_a_wrong_header_does_not_repeat_a_row_that_may_hold_a_secret() -> None:
    ((_, reason),) = problems_of(b"centro,10.0.0.1,161,huawei,2c,canary-7f3a\n")

    assert "canary" not in reason


def test_text_in_another_encoding_is_named_with_its_line() -> None:
    assert problems_of(HEADER + "peñón,h,,,,s\n".encode("latin-1")) == [(2, "the file is not UTF-8 text")]


def test_rows_with_more_or_fewer_cells_are_all_named() -> None:
    content = HEADER + b"uno,h,,,,s,extra\ndos,h\ntres,h,,,,s\n"

    assert problems_of(content) == [(2, "7 columns instead of 6"), (3, "2 columns instead of 6")]


@pytest.mark.parametrize("row", [b'uno,"h,,,,s\n', b'uno,"h"x,,,,s\n'])
def test_what_is_no_csv_is_named_with_its_line(row: bytes) -> None:
    ((line, reason),) = problems_of(HEADER + row)

    assert line == 2
    assert reason.startswith("this is not CSV: ")


def test_a_written_file_holds_no_secret_and_no_formula() -> None:
    entry = OltEntry("=cmd|' /C calc'!A0", "@host", "161", "auto", "2c", community=Secret("canary-7f3a"))

    text = write_entries([entry])

    assert text.splitlines()[1] == "'=cmd|' /C calc'!A0,'@host,161,auto,2c,"


TEXT = st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=20)


@given(TEXT, TEXT, st.sampled_from(["2c", "3"]))
def test_what_is_written_is_read_again(name: str, host: str, version: str) -> None:
    entry = OltEntry(name, host, "161", "auto", version)

    entries, problems = read_entries(write_entries([entry]).encode())

    assert (entries, problems) == ([entry], [])
