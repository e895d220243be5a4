"""Customers from a file: by serial, address or place, as the file says, and nothing of one that cannot be right."""

import io
import zipfile

import pytest
from onu_world import ELSEWHERE, HERE, THERE, after, street, walk

from facho.accounts.audit import console
from facho.hosts.inventory import InventoryError
from facho.infrastructure.spreadsheet import write_workbook
from facho.onus.customers import change_tags, import_customers
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
    assert reason.startswith("the header must be serial, mac, or olt and place, and some of label")


def test_every_bad_row_is_reported_and_nothing_is_imported() -> None:
    walk(make_olt(), {HERE: SERIAL})
    rows = [f"{SERIAL},Ana", ",Luz", f"{SERIAL},Eva", f"{OTHER},{'x' * 121}", f"{OTHER}"]

    problems = problems_of("serial,label\n" + "".join(f"{row}\n" for row in rows))

    assert problems == [
        (3, "the serial is missing"),
        (4, "this serial is on line 2 already"),
        (5, "label is longer than 120 characters"),
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


def test_without_a_serial_an_address_or_a_place_names_the_onu() -> None:
    olt = make_olt()
    walk(olt, {HERE: SERIAL, THERE: OTHER})
    Onu.objects.filter(serial=SERIAL).update(serial="", mac="00:1B:44:11:3A:B7")
    rows = [",001b-4411-3ab7,,,Ana", f",,{olt.name},0/1/0/2,Luz", f",,{olt.name},0/1/9/2,Eva"]

    imported = import_customers("\n".join(["serial,mac,olt,place,label", *rows]).encode(), now=NOW)

    assert dict(OnuCustomer.objects.values_list("onu__mac", "label")) == {"00:1B:44:11:3A:B7": "Ana", "": "Luz"}
    assert [(problem.line, problem.reason) for problem in imported.left_out] == [(4, "no ONU is at this place")]


def test_two_rows_about_one_onu_write_the_first() -> None:
    olt = make_olt()
    walk(olt, {HERE: SERIAL})
    rows = f"serial,olt,place,label\n{SERIAL},,,Ana\n,{olt.name},0/1/0/1,Luz\n"

    imported = import_customers(rows.encode(), now=NOW)

    assert [(each.line, each.reason) for each in imported.left_out] == [(3, "this ONU is on line 2 already")]
    assert OnuCustomer.objects.get().label == "Ana"


def test_a_workbook_is_read_as_its_csv_would_be() -> None:
    walk(make_olt(), {HERE: SERIAL, THERE: OTHER})
    cells = [
        ["Número de serie", "Teléfono", "latitude", "longitude"],
        [SERIAL, 3105551234, 4.6097, -74.0817],
        [OTHER, None, None],
    ]

    import_customers(b"".join(write_workbook(cells)), now=NOW)

    rows = set(OnuCustomer.objects.values_list("onu__serial", "phone", "latitude", "longitude"))
    assert rows == {(SERIAL, "3105551234", 4.6097, -74.0817)}


@pytest.mark.parametrize(
    ("cells", "reason"),
    [
        ("91,0", "latitude is a number of degrees from -90 to 90"),
        ("4,", "latitude and longitude belong together"),
        ("nan,0", "latitude is a number of degrees from -90 to 90"),
    ],
)
def test_a_place_that_is_not_on_earth_is_refused(cells: str, reason: str) -> None:
    assert (2, reason) in problems_of(f"serial,latitude,longitude\n{SERIAL},{cells}\n")


def test_a_hostile_workbook_is_refused_and_not_unpacked() -> None:
    bomb = io.BytesIO()
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/worksheets/sheet1.xml", b"0" * 101_000_000)
    entities = io.BytesIO()
    with zipfile.ZipFile(entities, "w") as archive:
        archive.writestr("xl/worksheets/sheet1.xml", '<!DOCTYPE x [<!ENTITY a "b">]><worksheet>&a;</worksheet>')

    for content in (bomb.getvalue(), entities.getvalue(), b"PK\x03\x04 nothing"):
        with pytest.raises(InventoryError) as caught:
            import_customers(content, now=NOW)
        assert "workbook" in caught.value.problems[0].reason


def test_tags_are_added_and_taken_away_once() -> None:
    walk(make_olt(), street(3))
    ids = list(Onu.objects.order_by("id").values_list("id", flat=True))
    OnuCustomer.objects.create(onu_id=ids[0], tags="VIP, norte")
    OnuCustomer.objects.create(onu_id=ids[1], tags="x" * 255)

    added = change_tags(ids, add="vip", who=console(), now=NOW)
    undone = change_tags(added.onu_ids, remove="vip", who=console(), now=NOW)

    assert (added.onu_ids, added.full) == ([ids[2]], 1)
    assert undone.onu_ids == [ids[2]]
    assert OnuCustomer.objects.get(onu_id=ids[0]).tags == "VIP, norte"
