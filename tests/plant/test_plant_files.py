"""Files of the plant: what they change, what they refuse, and that a file written by the product changes nothing."""

import io
import json
import re
import zipfile
from pathlib import Path
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.db.models import Model
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.django import TestCase

from api.rows import make_olt
from facho.accounts.audit import console
from facho.accounts.scope import EVERYTHING, OltScope
from facho.hosts.inventory import InventoryError, RowVerdict
from facho.hosts.models import OltGroup
from facho.onus.customers import Imported
from facho.onus.models import Onu, OnuCustomer
from facho.plant.boxes import import_plan, plan_entries, save_entries
from facho.plant.files import KINDS, read_file, write_file
from facho.plant.models import AttachmentSources, Box, OnuAttachment, Zone
from factories import NOW
from plant.plant_world import make_plant

pytestmark = pytest.mark.django_db


def save(text: str | bytes, scope: OltScope = EVERYTHING) -> Imported:
    content = text.encode() if isinstance(text, str) else text
    return save_entries(read_file(content).entries, who=console(), scope=scope, now=NOW)


def problems(text: str | bytes, scope: OltScope = EVERYTHING) -> list[tuple[int | None, str]]:
    with pytest.raises(InventoryError) as caught:
        save(text, scope)
    return [(each.line, each.reason) for each in caught.value.problems]


def written(kind: str, scope: OltScope = EVERYTHING) -> bytes:
    return b"".join(write_file(kind, scope))


def rows(model: type[Model]) -> list[dict[str, Any]]:
    return list(model._default_manager.order_by("pk").values())


def feature(properties: dict[str, Any], geometry: Any = None) -> str:
    whole = {"type": "Feature", "properties": properties, "geometry": geometry}
    return json.dumps({"type": "FeatureCollection", "features": [whole]})


def test_boxes_come_from_a_list_in_any_order() -> None:
    olt = make_plant().olt
    text = (
        "name,kind,zone,fed_by,olt,port,outputs,latitude,longitude\n"
        'CTO 9,,North,S 9,,,1:8,"4,6","-74,1"\n'
        f"S 9,splitter,,,{olt.name},0/7/5,4,,\n"
    )

    saved = save(text)

    box = Box.objects.get(name="CTO 9")
    assert (saved.written, box.kind, str(box.zone), str(box.parent)) == (2, "cto", "North", "S 9")
    assert (box.outputs, box.latitude, box.longitude) == (8, 4.6, -74.1)
    assert box.pon_port == Box.objects.get(name="S 9").pon_port


def test_a_pair_of_coordinates_may_stand_in_one_cell() -> None:
    save('name,latitude,longitude\nCTO 1,"4.6097, -74.0817",\nCTO 2,"4,5 -74,25",\nCTO 3,"4.5,-74.25",\n')

    places = dict(Box.objects.values_list("name", "latitude"))
    assert places == {"CTO 1": 4.6097, "CTO 2": 4.5, "CTO 3": 4.5}
    assert list(Box.objects.order_by("name").values_list("longitude", flat=True)) == [-74.0817, -74.25, -74.25]


def test_a_box_that_moves_to_another_port_takes_those_behind_it_along() -> None:
    plant, other = make_plant(), make_plant(name="B ").olt

    save(f"name,olt,port\nS 1,{other.name},0/7/5\n")

    assert {box.pon_port.olt_id for box in Box.objects.select_related("pon_port") if box.pon_port} == {other.id}
    assert LogEntry.objects.filter(object_repr="CTO 1").count() == 1
    plant.boxes[0].refresh_from_db()
    assert plant.boxes[0].parent == plant.splitter


def test_columns_that_are_not_there_stay_and_empty_ones_are_emptied() -> None:
    make_plant()

    save("name,zone\nCTO 1,\n")

    box = Box.objects.get(name="CTO 1")
    assert (box.zone, box.outputs, box.latitude) == (None, 8, 4.63)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("name,fed_by\nS 1,CTO 1\n", "a box cannot be fed by itself, nor by one behind it"),
        ("name,fed_by\nA,B\nB,A\n", "a box cannot be fed by itself, nor by one behind it"),
        ("name,fed_by\nA,A\n", "a box cannot be fed by itself, nor by one behind it"),
        ("name,fed_by\nA,nobody\n", "there is no box “nobody”"),
        ("name,zone\nA,nowhere\n", "there is no zone “nowhere”"),
        ("name,olt,port\nA,OLT,0/1/99\n", "there is no PON port 0/1/99 on OLT"),
        ("name,olt,port\nA,,0/1/9\n", "olt and port belong together"),
        ("name,olt,port\nA,OLT,nine\n", "a PON port is frame, slot and port, as in 0/1/3"),
        ("name,outputs\nA,1:300\n", "outputs is a number from 2 to 256, such as 8 for 1:8"),
        ("name,kind\nA,barn\n", "the kind is one of: cto, splitter"),
        ("name,latitude,longitude\nA,95,1\n", "latitude is a number of degrees from -90 to 90"),
        ("name,latitude,longitude\nA,4.6,\n", "latitude and longitude belong together"),
        ("name,kind\n,cto\n", "the name is missing"),
        (f"name,kind\n{'A' * 81},cto\n", "name is longer than 80 characters"),
        ("name,kind\nA,cto\nA,cto\n", "“A” is on line 2 already"),
        ("type,name\nbarn,A\n", "the type is one of: zone, box, onu"),
    ],
)
def test_what_cannot_be_is_named_and_nothing_is_written(text: str, reason: str) -> None:
    make_plant()
    before = rows(Box)

    assert reason in [each for _line, each in problems(text)]
    assert rows(Box) == before


def test_a_column_that_nobody_knows_is_refused_with_those_that_are_known() -> None:
    ((line, reason),) = problems("name,colour\nA,red\n")

    assert line == 1
    assert reason.startswith("the header must be some of type, name, kind, ")


def test_an_onu_is_on_no_box_that_is_not_there() -> None:
    assert problems(f"serial,box\n{make_plant().onus[0].serial},nowhere\n") == [(2, "there is no box “nowhere”")]


def test_a_port_that_contradicts_the_feeding_box_is_refused() -> None:
    other = make_plant(name="B ").olt
    make_plant()

    ((line, reason),) = problems(f"name,olt,port\nCTO 1,{other.name},0/7/5\n")

    assert line == 2
    assert reason.startswith("it is fed by “S 1”, which is on ")


def test_onus_are_put_on_boxes_and_off_by_a_list() -> None:
    plant = make_plant()
    OnuAttachment.objects.filter(onu=plant.onus[1]).update(source=AttachmentSources.IMPORT)
    OnuAttachment.objects.filter(onu=plant.onus[2]).delete()
    codes = [onu.serial for onu in plant.onus]

    saved = save(f"serial,box\n{codes[1]},\n{codes[2]},CTO 2\n")

    assert saved.written == 2
    assert not OnuAttachment.objects.filter(onu=plant.onus[1]).exists()
    assert OnuAttachment.objects.get(onu=plant.onus[2]).source == AttachmentSources.IMPORT


def test_a_list_does_not_move_who_was_put_somewhere_by_hand() -> None:
    plant = make_plant()

    saved = save(f"serial,box\n{plant.onus[0].serial},CTO 2\n")

    assert [each.reason for each in saved.left_out] == ["this ONU is on “CTO 1” already, by hand"]
    assert OnuAttachment.objects.get(onu=plant.onus[0]).box == plant.boxes[0]


def test_a_list_confirms_what_was_inferred() -> None:
    plant = make_plant()
    OnuAttachment.objects.update(source=AttachmentSources.INFERRED)

    save(f"serial,box\n{plant.onus[0].serial},CTO 1\n")

    assert OnuAttachment.objects.get(onu=plant.onus[0]).source == AttachmentSources.IMPORT


def test_an_onu_of_another_port_is_left_out() -> None:
    plant, other = make_plant(), make_plant(name="B ")
    OnuAttachment.objects.all().delete()

    saved = save(f"serial,box\n{other.onus[0].serial},{plant.boxes[0].name}\n")

    assert saved.left_out[0].reason.startswith("this ONU is on ")
    assert not OnuAttachment.objects.exists()


def test_a_customer_gets_a_place_by_a_point_which_is_recorded() -> None:
    plant = make_plant()
    properties = {"serial": plant.onus[1].serial}

    save(feature(properties, {"type": "Point", "coordinates": [-74.5, 4.5, 2600]}))

    customer = OnuCustomer.objects.get(onu=plant.onus[1])
    assert (customer.latitude, customer.longitude) == (4.5, -74.5)
    assert LogEntry.objects.filter(content_type__model="onucustomer").count() == 1


def test_changes_are_shown_with_their_words() -> None:
    make_plant()

    plan = import_plan(
        plan_entries(read_file(b"name,zone,outputs\nCTO 1,,16\nCTO 3,North,\nCTO 2,North,8\n").entries, EVERYTHING)
    )

    assert [(row.line, row.name, row.verdict) for row in plan.rows] == [
        (2, "CTO 1", RowVerdict.CHANGED),
        (3, "CTO 3", RowVerdict.NEW),
        (4, "CTO 2", RowVerdict.UNCHANGED),
    ]
    assert [(each.label, each.before, each.after) for each in plan.rows[0].changes] == [
        ("Zone", "North", ""),
        ("Outputs", "8", "16"),
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_what_was_written_changes_nothing_when_it_is_read(kind: str) -> None:
    make_plant(make_olt(name="Centro, <b> & Sur"))
    OnuAttachment.objects.filter(box__name="CTO 2").update(source=AttachmentSources.INFERRED)
    before = [rows(model) for model in (Zone, Box, OnuAttachment, OnuCustomer)]

    found = read_file(written(kind))
    saved = save_entries(found.entries, who=console(), now=NOW)

    assert (saved.written, saved.unchanged, saved.left_out, found.left_out) == (0, 10, (), [])
    assert [rows(model) for model in (Zone, Box, OnuAttachment, OnuCustomer)] == before


@pytest.mark.parametrize("kind", KINDS)
def test_a_plant_that_was_lost_comes_back_from_its_file(kind: str) -> None:
    make_plant()
    before, file = written(kind), written(kind)
    Zone.objects.all().delete()
    Box.objects.all().delete()

    save(file)

    assert written(kind) == before


names = st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=12)
degrees = st.none() | st.integers(-80_000_000, 80_000_000)


class RoundTrips(TestCase):
    @settings(max_examples=25)
    @given(
        zone=names,
        boxes=st.lists(
            st.tuples(names, degrees, st.none() | st.integers(2, 256)), unique_by=lambda each: each[0], max_size=4
        ),
        kind=st.sampled_from(KINDS),
    )
    def test_any_plant_survives_any_kind_of_file(
        self, zone: str, boxes: list[tuple[str, int | None, int | None]], kind: str
    ) -> None:
        row = Zone.objects.create(name=zone)
        feeder = None
        for name, place, outputs in boxes:
            point = None if place is None else place / 1_000_000
            feeder = Box.objects.create(
                name=name, zone=row, parent=feeder, latitude=point, longitude=point, outputs=outputs
            )

        saved = save(written(kind))

        assert (saved.written, saved.unchanged) == (0, 1 + len(boxes))


def kml(mark: str, before: str = "") -> str:
    return f'<?xml version="1.0"?>{before}<kml><Document><Folder>{mark}</Folder></Document></kml>'


def test_placemarks_as_other_programs_write_them_are_boxes() -> None:
    point = "<Point><altitudeMode>clampToGround</altitudeMode><coordinates>\n -74.08,4.61,0 \n</coordinates></Point>"
    data = '<ExtendedData><SchemaData><SimpleData name="outputs">16</SimpleData></SchemaData></ExtendedData>'

    save(kml(f"<name>Downtown</name><Placemark><name> CTO  7 </name>{data}{point}</Placemark>"))

    box = Box.objects.get()
    assert (box.name, box.outputs, box.latitude, box.longitude) == ("CTO 7", 16, 4.61, -74.08)


@pytest.mark.parametrize("text", [
    kml("<Placemark><name>Cable</name><LineString><coordinates>1,2 3,4</coordinates></LineString></Placemark>"),
    feature({"name": "Cable"}, {"type": "LineString", "coordinates": [[1, 2], [3, 4]]}),
])  # fmt: skip
def test_lines_are_left_out(text: str) -> None:
    found = read_file(text.encode())

    assert [each.reason for each in found.left_out] == ["only points are read, and this is a LineString"]
    assert not found.entries


BOMB = '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;">]>'
OUTSIDE = '<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]>'


def kmz() -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("doc.kml", "<kml>" + " " * 1_000_000 + "</kml>")
    return content.getvalue()


HOSTILE: dict[str, tuple[bytes, str]] = {
    "entities that grow": (kml("<Placemark><name>&b;</name></Placemark>", BOMB).encode(), "document type"),
    "entities of the machine": (kml("<Placemark><name>&a;</name></Placemark>", OUTSIDE).encode(), "document type"),
    "deep KML": (b"<kml>" + b"<Folder>" * 100_000, "nested too deeply"),
    "cut KML": (b"<kml><Document>", "this is not KML"),
    "another XML": (b"<svg></svg>", "this is not KML"),
    "KML that is no text": (b"<kml>\xff\xfe</kml>", "this is not KML"),
    "KMZ": (kmz(), "KMZ is not supported"),
    "an archive of nothing": (b"PK\x03\x04rubbish", "this workbook cannot be read"),
    "deep GeoJSON": (b'{"features":' + b"[" * 200_000, "nested too deeply"),
    "endless numbers": (feature({"name": "A"}).replace('"A"', "Infinity").encode(), "this is not GeoJSON"),
    "a list": (b"[]", "this is not GeoJSON"),
    "no features": (b'{"type": "FeatureCollection", "features": {}}', "this is not GeoJSON"),
    "features that are none": (b'{"type": "FeatureCollection", "features": [7, null]}', "a feature has properties"),
    "objects as names": (feature({"name": {"a": 1}}).encode(), "name is neither a text nor a number"),
    "huge coordinates": (
        feature({"name": "A"}, {"type": "Point", "coordinates": [1e300, 0]}).encode(), "longitude is a number"
    ),
    "coordinates of truth": (
        feature({"name": "A"}, {"type": "Point", "coordinates": [True, 0]}).encode(), "a point is longitude"
    ),
    "a name with controls": (feature({"name": "A\x1b[2J"}).encode(), "the name has a character that cannot be shown"),
    "a name with a NUL": (b"name,kind\nA\0B,cto\n", "this is not CSV: NUL"),
    "nothing": (b"", "the header must be some of"),
    "other letters": ("name\nNiño\n".encode("latin-1"), "the file is not UTF-8 text"),
}  # fmt: skip


@pytest.mark.parametrize(("content", "reason"), HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_file_is_refused_with_a_reason(content: bytes, reason: str) -> None:
    assert [reported for _line, reported in problems(content) if reason in reported]
    assert not Box.objects.exists()


def test_a_formula_in_a_name_is_no_formula_in_a_file() -> None:
    save(feature({"name": "=1+1"}))

    assert b"\nbox,'=1+1,cto" in written("csv")
    assert save(written("csv")).unchanged == 1


def test_a_limited_person_reads_and_writes_only_boxes_of_own_ports() -> None:
    group = OltGroup.objects.create(name="North")
    own, other = make_plant(make_olt(group=group), name="Own "), make_plant(name="Other ")
    Box.objects.create(name="Other nowhere")
    scope = OltScope(frozenset([group.id]))
    before = Box.objects.filter(name__startswith="Other").order_by("id").values()

    file = written("geojson", scope)

    assert b"Other" not in file
    assert b"Own CTO 1" in file
    assert save(file, scope).unchanged == 10
    for text, reason in [
        ("name,outputs\nOther CTO 1,4\n", "this name is taken"),
        ("name,outputs\nOther nowhere,4\n", "this name is taken"),
        (f"name,olt,port\nNew,{other.olt.name},0/7/5\n", f"there is no PON port 0/7/5 on {other.olt.name}"),
        ("name,outputs\nNew,4\n", "choose a PON port: without one you would not see this box"),
        ("name,zone\nOwn CTO 1,Other North\n", "there is no zone “Other North”"),
        ("type,name\nzone,Own South\n", "to change zones you have to see every OLT"),
    ]:
        assert reason in [reported for _line, reported in problems(text, scope)]
    assert "no ONU has this serial" in save(f"serial,box\n{other.onus[0].serial},Own CTO 1\n", scope).left_out[0].reason
    assert list(Box.objects.filter(name__startswith="Other").order_by("id").values()) == list(before)
    assert own.splitter.name == "Own S 1"


DOCUMENT = Path(__file__).parents[2] / "docs/plant.md"


def test_every_example_of_the_document_is_taken() -> None:
    make_plant()
    onu = Onu.objects.order_by("id")[0]
    OnuAttachment.objects.filter(onu=onu).delete()
    Onu.objects.filter(id=onu.id).update(serial="PLNT00010001")
    shown = re.findall(r"```(csv|json|xml)\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)

    answers = [save(text) for _kind, text in shown]

    assert [kind for kind, _text in shown] == ["csv", "csv", "json", "xml"]
    assert [(each.written, each.unchanged) for each in answers] == [(2, 0), (1, 0), (0, 1), (0, 1)]
    assert OnuAttachment.objects.get(onu=onu).box.name == "CTO 91"
