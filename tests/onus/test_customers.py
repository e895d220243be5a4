"""Customers from a CSV file: by serial, as the file says, and nothing of a file that cannot be right."""

import pytest
from onu_world import ELSEWHERE, HERE, THERE, after, street, walk

from facho.hosts.inventory import InventoryError
from facho.onus.customers import import_customers
from facho.onus.models import Onu, OnuCustomer
from factories import NOW, make_olt

pytestmark = pytest.mark.django_db

SERIAL, OTHER = "HWTC00000001", "HWTC00000002"


def problems_of(content: str) -> list[tuple[int | None, str]]:
    with pytest.raises(InventoryError) as caught:
        import_customers(content.encode(), now=NOW)
    return [(problem.line, problem.reason) for problem in caught.value.problems]


def test_a_file_writes_its_columns_and_leaves_the_others() -> None:
    olt = make_olt()
    walk(olt, {HERE: SERIAL})
    import_customers(f"serial,label,phone\n{SERIAL},Ana,555\n".encode(), now=NOW)

    imported = import_customers(f"\ufeffTags,Serial,label\nvip ,{SERIAL},\n".encode(), now=after(1))

    customer = OnuCustomer.objects.get()
    assert (imported.written, imported.unchanged, imported.left_out) == (1, 0, ())
    assert (customer.label, customer.phone, customer.tags, customer.updated_at) == ("", "555", "vip", after(1))


def test_a_serial_is_found_in_either_spelling_and_tags_are_tidied() -> None:
    walk(make_olt(), {HERE: SERIAL})

    import_customers(b'serial,tags\n4857544300000001,"norte,  vip , norte,"\n', now=NOW)

    assert OnuCustomer.objects.get().tags == "norte, vip"


def test_what_is_so_already_is_not_written() -> None:
    walk(make_olt(), {HERE: SERIAL})
    content = f"serial,label\n{SERIAL},Ana\n".encode()
    import_customers(content, now=NOW)

    imported = import_customers(content, now=after(1))

    assert (imported.written, imported.unchanged) == (0, 1)
    assert OnuCustomer.objects.get().updated_at == NOW


def test_a_byte_that_no_database_stores_is_named_with_its_line() -> None:
    assert problems_of(f"serial,label\n{OTHER},Sol\n{SERIAL},A\0na\n") == [(3, "this is not CSV: NUL")]


def test_a_dry_run_tells_and_writes_nothing() -> None:
    walk(make_olt(), {HERE: SERIAL})

    imported = import_customers(f"serial,label\n{SERIAL},Ana\n".encode(), is_dry_run=True, now=NOW)

    assert imported.written == 1
    assert not OnuCustomer.objects.exists()


def test_serials_that_lead_to_no_single_onu_are_left_out_and_named() -> None:
    olt = make_olt()
    walk(olt, {HERE: SERIAL, THERE: SERIAL, ELSEWHERE: OTHER})

    imported = import_customers(f"serial,label\n{SERIAL},Ana\nHWTC0000FFFF,Luz\n{OTHER},Sol\n".encode(), now=NOW)

    assert [(problem.line, problem.reason) for problem in imported.left_out] == [
        (2, "2 ONUs have this serial"),
        (3, "no ONU has this serial"),
    ]
    assert OnuCustomer.objects.get().onu.serial == OTHER


def test_the_present_one_of_two_rows_is_meant() -> None:
    first, second = make_olt(), make_olt()
    walk(first, {HERE: SERIAL})
    for number in (1, 2):
        walk(first, {}, now=after(number))
    walk(second, {HERE: SERIAL})

    import_customers(f"serial,label\n{SERIAL},Ana\n".encode(), now=NOW)

    assert OnuCustomer.objects.get().onu.olt == second


@pytest.mark.parametrize("header", ["", "label,phone", "serial", "serial,label,label", "serial,community"])
def test_a_header_without_a_serial_or_with_strangers_is_refused(header: str) -> None:
    ((line, reason),) = problems_of(f"{header}\nx,y\n" if header else "")

    assert line == 1
    assert reason.startswith("the header must be serial and some of label")


def test_every_bad_row_is_told_and_nothing_is_imported() -> None:
    walk(make_olt(), {HERE: SERIAL})
    rows = [f"{SERIAL},Ana", ",Luz", f"{SERIAL},Eva", f"{OTHER},{'x' * 121}", f"{OTHER}"]

    problems = problems_of("serial,label\n" + "".join(f"{row}\n" for row in rows))

    assert problems == [
        (3, "the serial is missing"),
        (4, "this serial is on line 2 already"),
        (5, "label is longer than 120 letters"),
        (6, "1 columns instead of 2"),
    ]
    assert not OnuCustomer.objects.exists()


def test_customers_stay_with_an_onu_that_moves(django_assert_max_num_queries: object) -> None:
    olt = make_olt()
    onus = street(600)
    walk(olt, onus)
    content = "serial,label\n" + "".join(f"{serial},C {serial}\n" for serial in onus.values())
    # Three for each five hundred and a savepoint; for the trail whose name it is, and an insert for each 142 on SQLite.
    with django_assert_max_num_queries(19):  # type: ignore[operator]
        import_customers(content.encode(), now=NOW)

    walk(olt, {place._replace(port=3): serial for place, serial in onus.items()}, now=after(1))

    onu = Onu.objects.select_related("customer", "pon_port").get(serial=onus[HERE])
    assert (onu.customer.label, str(onu.pon_port)) == (f"C {onu.serial}", "0/1/3")
