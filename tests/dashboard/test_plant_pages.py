"""The pages of the plant: boxes and zones by form, ONUs on boxes with undo, files, and what the map draws."""

import json
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.utils import timezone

from api.rows import make_olt, make_user
from dashboard.outage_rows import make_outage
from facho.accounts.models import Profile
from facho.accounts.roles import Role
from facho.hosts.models import OltGroup, Reachability
from facho.onus.models import Onu, OnuEvent, OnuReading
from facho.plant.models import Box, FindingOnu, LightFinding, OnuAttachment, OnuBox, Zone
from facho.polling.domain.onu_state import RunState
from plant.plant_world import SmallPlant, make_plant
from web.every_address import body_of

pytestmark = pytest.mark.django_db

WORLD = "/map/features/?west=-180&south=-90&east=180&north=90"


def client_of(role: Role, group: OltGroup | None = None) -> Client:
    user = make_user(role)
    if group:
        Profile.objects.create(user=user).olt_groups.add(group)
    client = Client(headers={"accept-language": "en"})
    client.force_login(user)
    return client


@pytest.fixture
def operator() -> Client:
    return client_of(Role.OPERATOR)


@pytest.fixture
def plant() -> SmallPlant:
    return make_plant(make_olt(reachability=Reachability.UP))


def text_of(client: Client, address: str, data: Any = None) -> str:
    answer = client.post(address, data, follow=True) if data is not None else client.get(address)
    return str(answer.content.decode())


def typed(**changed: str) -> dict[str, str]:
    names = ("name", "kind", "zone", "fed_by", "olt", "port", "outputs", "latitude", "longitude")
    return {**dict.fromkeys(names, ""), "kind": "cto", **changed}


def test_a_box_is_added_and_its_coordinates_are_pasted_in_one(operator: Client, plant: SmallPlant) -> None:
    page = text_of(
        operator, "/boxes/add/", typed(name=" CTO  9 ", fed_by="S 1", outputs="1:16", latitude="4,61 -74,08")
    )

    box = Box.objects.get(name="CTO 9")
    assert "Saved: CTO 9." in page
    assert (box.parent, box.pon_port, box.outputs, box.latitude, box.longitude) == (
        plant.splitter, plant.port, 16, 4.61, -74.08
    )  # fmt: skip
    assert LogEntry.objects.filter(object_repr="CTO 9").exists()


@pytest.mark.parametrize(
    ("changed", "reported"),
    [
        ({"fed_by": "CTO 1"}, "A box cannot be fed by itself, nor by one behind it."),
        ({"latitude": "4.6"}, "Latitude and longitude belong together."),
        ({"latitude": "north"}, "Latitude is a number of degrees from -90 to 90."),
        ({"outputs": "many"}, "Outputs is a number from 2 to 256, such as 8 for 1:8."),
        ({"name": "CTO 2"}, "This name is taken."),
    ],
)
def test_a_wrong_box_is_reported_why_and_keeps_what_was_typed(
    operator: Client, plant: SmallPlant, changed: dict[str, str], reported: str
) -> None:
    page = text_of(operator, f"/boxes/{plant.splitter.id}/edit/", typed(name="S 1", kind="splitter") | changed)

    assert reported in page
    assert all(f'value="{value}"' in page for value in changed.values())
    plant.splitter.refresh_from_db()
    assert (plant.splitter.name, plant.splitter.latitude) == ("S 1", 4.62)


def test_a_box_is_renamed_and_what_it_feeds_stays_behind_it(operator: Client, plant: SmallPlant) -> None:
    form = operator.get(f"/boxes/{plant.splitter.id}/edit/").context["form"]
    text_of(operator, f"/boxes/{plant.splitter.id}/edit/", {**form.initial, "name": "S One"})

    assert {box.parent.name for box in Box.objects.filter(kind="cto").select_related("parent") if box.parent} == {
        "S One"
    }
    assert Box.objects.get(name="S One").pon_port == plant.port


def test_what_is_lost_with_a_box_is_said_before(operator: Client, plant: SmallPlant) -> None:
    asked = text_of(operator, f"/boxes/{plant.boxes[0].id}/delete/")
    asked_of_splitter = text_of(operator, f"/boxes/{plant.splitter.id}/delete/")

    text_of(operator, f"/boxes/{plant.boxes[0].id}/delete/", {})

    assert "3 ONUs will have no box" in asked
    assert "2 boxes fed by it will have no feed" in asked_of_splitter
    assert not Box.objects.filter(id=plant.boxes[0].id).exists()
    assert Onu.objects.count() == 6


def test_zones_are_added_renamed_and_deleted(operator: Client, plant: SmallPlant) -> None:
    text_of(operator, "/zones/", {"name": "South", "latitude": "4.5,-74.2", "longitude": ""})
    text_of(operator, "/zones/", {"zone": plant.zone.id, "name": "Far North", "latitude": "", "longitude": ""})
    twice = text_of(operator, "/zones/", {"name": "South", "latitude": "", "longitude": ""})
    south = Zone.objects.get(name="South")
    text_of(operator, "/zones/", {"zone": south.id, "delete": "yes"})

    assert (south.latitude, south.longitude) == (4.5, -74.2)
    assert "This name is taken." in twice
    assert list(Zone.objects.values_list("name", "latitude")) == [("Far North", None)]
    assert Box.objects.filter(zone=plant.zone).count() == 3


def test_boxes_are_found_sorted_and_exported(operator: Client, plant: SmallPlant) -> None:
    found = text_of(operator, "/boxes/?q=north+cto&sort=-name")
    file = body_of(operator.get("/boxes/?export=csv&kind=splitter"))

    assert found.index("CTO 2") < found.index("CTO 1")
    assert "S 1</bdi></a></th>" not in found
    assert file.splitlines()[1].startswith("S 1,unknown,0,splitter,North,,")


def test_a_box_shows_its_onus_and_whether_it_is_full(operator: Client, plant: SmallPlant) -> None:
    OnuReading.objects.create(onu=plant.onus[0], run_state=RunState.ONLINE, rx_power_cdbm=-2900)
    OnuReading.objects.create(onu=plant.onus[1], run_state=RunState.OFFLINE)
    Box.objects.filter(id=plant.boxes[0].id).update(outputs=2)

    page = text_of(operator, f"/boxes/{plant.boxes[0].id}/")

    assert "some offline" in page
    assert "more is connected than it has outputs" in page
    assert all(onu.serial in page for onu in plant.onus[:3])
    assert plant.onus[3].serial not in page


def test_the_number_of_weak_onus_of_a_box_opens_to_them(operator: Client, plant: SmallPlant) -> None:
    for onu, power in zip(plant.onus, (-2900, -2000, None), strict=False):
        OnuReading.objects.create(onu=onu, run_state=RunState.ONLINE, rx_power_cdbm=power)

    page = text_of(operator, f"/boxes/{plant.boxes[0].id}/")
    listed = text_of(operator, page.partition('id="box-weak" href="')[2].partition('"')[0].replace("&amp;", "&"))

    assert ">1 with weak light</a>" in page
    assert [onu.serial in listed for onu in plant.onus] == [True] + [False] * 5


def test_an_onu_is_put_on_a_box_on_its_page(operator: Client, plant: SmallPlant) -> None:
    onu = plant.onus[0]

    wrong = text_of(operator, f"/onus/{onu.id}/box/", {"box": "nowhere"})
    text_of(operator, f"/onus/{onu.id}/box/", {"box": "CTO 2"})

    assert "There is no box “nowhere”." in wrong
    assert OnuAttachment.objects.get(onu=onu).box == plant.boxes[1]
    assert f'href="/boxes/{plant.boxes[1].id}/"' in text_of(operator, f"/onus/{onu.id}/")
    text_of(operator, f"/onus/{onu.id}/box/", {"box": ""})
    assert not OnuAttachment.objects.filter(onu=onu).exists()


def test_selected_onus_are_put_on_a_box_and_that_is_undone(operator: Client, plant: SmallPlant) -> None:
    other = make_plant(name="B ")
    before = list(OnuAttachment.objects.order_by("onu_id").values())
    ids = [onu.id for onu in (*plant.onus, other.onus[0])]

    page = text_of(operator, "/onus/act/", {"act": "box", "box": "CTO 2", "id": ids})
    moved = OnuAttachment.objects.filter(box=plant.boxes[1]).count()
    undone = text_of(operator, "/onus/act/", {"act": "undo"})

    assert "3 ONUs assigned to CTO 2." in page
    assert "1 ONU is on another PON port." in page
    assert moved == 6
    assert "Undone on 3 ONUs." in undone
    assert list(OnuAttachment.objects.order_by("onu_id").values()) == before


def test_the_inferred_tree_is_offered_and_made(operator: Client, plant: SmallPlant) -> None:
    Box.objects.all().delete()
    for onu in plant.onus[:4]:
        OnuBox.objects.create(onu=onu, pon_port=plant.port, number=1, confidence=0.92, events=3)
    page = f"/boxes/inferred/{plant.port.id}/"

    offered = text_of(operator, page)
    made = text_of(operator, page, {})

    assert "92 %" in offered
    assert f'href="/ports/{plant.port.id}/tree/1/"' in offered
    assert operator.get(f"/ports/{plant.port.id}/tree/1/").status_code == 200
    assert "1 boxes created, 4 ONUs assigned to boxes." in made
    assert set(OnuAttachment.objects.values_list("source", flat=True)) == {"inferred"}


def test_a_file_is_shown_and_then_imported(operator: Client, plant: SmallPlant) -> None:
    file = SimpleUploadedFile("plant.csv", b"name,zone,outputs\nCTO 1,,16\nCTO 7,<script>,\n")
    refused = text_of(operator, "/boxes/import/", {"file": file})
    page = text_of(operator, "/boxes/import/", {"text": "name,outputs\nCTO 1,16\nCTO 7,\n"})
    ticket = page.split('name="confirmed" value="')[1].split('"')[0]

    answer = text_of(operator, "/boxes/import/", {"confirmed": ticket})

    assert "there is no zone “&lt;script&gt;”" in refused
    assert "Import 2 rows" in page
    assert "2 written, 0 unchanged, 0 left out" in answer
    assert Box.objects.get(name="CTO 1").outputs == 16


@pytest.mark.parametrize("kind", ["geojson", "kml"])
def test_a_plant_goes_through_the_pages_as_a_file_of_the_map_and_comes_back(
    operator: Client, plant: SmallPlant, kind: str
) -> None:
    file = body_of(operator.get(f"/boxes/export/{kind}/")).encode()
    box = plant.boxes[1]
    place, outputs = (box.latitude, box.longitude), box.outputs
    Box.objects.filter(id=box.id).delete()

    page = text_of(operator, "/boxes/import/", {"file": SimpleUploadedFile(f"plant.{kind}", file)})
    ticket = page.split('name="confirmed" value="')[1].split('"')[0]
    text_of(operator, "/boxes/import/", {"confirmed": ticket})

    again = Box.objects.get(name=box.name)
    assert (again.latitude, again.longitude) == pytest.approx(place)
    assert (again.outputs, again.zone, again.parent) == (outputs, plant.zone, plant.splitter)
    assert again.attachments.count() == 3


def test_a_plant_that_changed_meanwhile_is_shown_again(operator: Client, plant: SmallPlant) -> None:
    page = text_of(operator, "/boxes/import/", {"text": "name,outputs\nCTO 1,16\n"})
    Box.objects.filter(name="CTO 1").update(outputs=32)

    answer = text_of(operator, "/boxes/import/", {"confirmed": page.split('name="confirmed" value="')[1].split('"')[0]})

    assert "the plant changed meanwhile" in answer
    assert Box.objects.get(name="CTO 1").outputs == 32


FORMS = ("/boxes/add/", "/boxes/import/", "/boxes/{box}/edit/", "/boxes/{box}/delete/", "/boxes/inferred/{port}/")


@pytest.mark.parametrize("address", [*FORMS, "/onus/{onu}/box/", "/zones/"])
def test_viewers_change_nothing(viewer: Client, plant: SmallPlant, address: str) -> None:
    path = address.format(box=plant.boxes[0].id, onu=plant.onus[0].id, port=plant.port.id)

    assert viewer.post(path, typed(name="X")).status_code == 403
    assert Box.objects.count() == 3


def test_a_limited_operator_has_only_own_boxes_and_changes_no_zone(plant: SmallPlant) -> None:
    group = OltGroup.objects.create(name="Own")
    own = make_plant(make_olt(group=group), name="Own ")
    client = client_of(Role.OPERATOR, group)

    lists = text_of(client, "/boxes/") + text_of(client, "/zones/") + text_of(client, WORLD)
    zone = client.post("/zones/", {"zone": own.zone.id, "name": "Mine", "latitude": "", "longitude": ""})
    portless = text_of(client, "/boxes/add/", typed(name="CTO 8"))

    assert "Own CTO 1" in lists
    assert "CTO 1" not in lists.replace("Own CTO 1", "")
    assert client.get(f"/boxes/{plant.boxes[0].id}/").status_code == 404
    assert zone.status_code == 403
    assert "Choose a PON port: without one you would not see this box." in portless
    assert "name is taken" in text_of(client, f"/boxes/{own.boxes[0].id}/edit/", typed(name="CTO 1"))


def features(client: Client, query: str = "") -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for each in json.loads(text_of(client, WORLD + query))["features"]:
        found.setdefault(each["properties"]["type"], []).append(each)
    return found


def test_the_map_has_zones_boxes_and_from_near_customers(viewer: Client, plant: SmallPlant) -> None:
    OnuReading.objects.create(onu=plant.onus[0], run_state=RunState.ONLINE, rx_power_cdbm=-2910)

    far, near = features(viewer), features(viewer, "&customers=true")

    assert (len(far["zone"]), len(far["box"]), "onu" in far) == (1, 3, False)
    looks = {each["properties"]["name"]: each["properties"]["look"] for each in far["box"]}
    assert looks == {"S 1": "weak", "CTO 1": "weak", "CTO 2": "unknown"}
    (customer,) = near["onu"]
    assert customer["geometry"]["coordinates"] == [-74.081, 4.631]
    assert customer["properties"]["before"] == [-74.08, 4.63]
    assert (customer["properties"]["look"], customer["properties"]["dbm"]) == ("weak", -29.1)


def test_the_map_draws_the_broken_segment_of_an_outage_and_its_page_names_it(viewer: Client, plant: SmallPlant) -> None:
    outage = make_outage(plant.olt, frame=0, slot=7, port=5, scope="pon", cause="fibre")
    for number, onu in enumerate(plant.onus):
        dark = {"run_state": RunState.OFFLINE, "outage": outage} if number >= 3 else {"run_state": RunState.ONLINE}
        OnuReading.objects.create(onu=onu, **dark)

    (drawn,) = features(viewer)["break"]
    page = text_of(viewer, f"/outages/{outage.id}/")

    assert drawn["geometry"]["coordinates"] == [[-74.08, 4.62], [-74.08, 4.64]]
    assert drawn["properties"]["id"] == outage.id
    assert "Probably broken between S 1 and CTO 2: 3 ONUs are dark behind it." in page
    assert f'href="/map/?outage={outage.id}"' in page
    for state, onus in (("lit", plant.onus[:3]), ("dark", plant.onus[3:])):
        address = page.partition(f'id="where-{state}" href="')[2].partition('"')[0].replace("&amp;", "&")
        listed = text_of(viewer, address)
        assert [f'href="/onus/{onu.id}/"' in listed for onu in plant.onus] == [onu in onus for onu in plant.onus]


def add_changes(onus: list[Onu], kind: str, at: datetime) -> None:
    OnuEvent.objects.bulk_create(
        OnuEvent(olt=onu.olt, pon_port=onu.pon_port, onu=onu, onu_number=onu.onu_id, at=at, kind=kind) for onu in onus
    )


def test_an_outage_that_is_over_keeps_its_segment_when_the_same_box_is_cut_again(
    viewer: Client, plant: SmallPlant
) -> None:
    on_port = {"frame": 0, "slot": 7, "port": 5, "scope": "pon", "cause": "fibre"}
    start = timezone.now() - timedelta(days=9)
    end, again = start + timedelta(hours=5), start + timedelta(days=8)
    first = make_outage(plant.olt, started_at=start, ended_at=end, **on_port)
    second = make_outage(plant.olt, started_at=again, **on_port)
    add_changes(plant.onus[3:], "down", start)
    # One customer of the other box had no power for a while.
    add_changes(plant.onus[:1], "down", start + timedelta(hours=2))
    add_changes(plant.onus[:1], "up", start + timedelta(hours=3))
    add_changes(plant.onus[3:], "up", end)
    # This time all of the port is dark.
    add_changes(plant.onus, "down", again)
    for onu in plant.onus:
        OnuReading.objects.create(onu=onu, run_state=RunState.OFFLINE, outage=second, state_since=again)

    page = text_of(viewer, f"/outages/{first.id}/")

    assert "Probably broken between S 1 and CTO 2: 3 ONUs are dark behind it." in page
    assert "where-dark" not in page
    listed = text_of(viewer, page.partition('id="where-went" href="')[2].partition('"')[0].replace("&amp;", "&"))
    assert [f'href="/onus/{onu.id}/"' in listed for onu in plant.onus] == [True, False, False, True, True, True]


def test_a_degraded_branch_is_on_its_box_and_a_loss_of_several_on_what_feeds_them(
    viewer: Client, plant: SmallPlant
) -> None:
    now = timezone.now()
    about = {"pon_port": plant.port, "since": now, "found_at": now, "judged_at": now, "onus_read": 6, "size_db": -3.1}
    branch = LightFinding.objects.create(kind="branch_decay", **about)
    both = LightFinding.objects.create(kind="common_step", **about)
    alone = LightFinding.objects.create(kind="step", onu=plant.onus[0], **about)
    LightFinding.objects.create(kind="step", onu=plant.onus[5], ended_at=now, **about)
    for finding, hit in ((branch, plant.onus[3:]), (both, plant.onus)):
        FindingOnu.objects.bulk_create(FindingOnu(finding=finding, onu=onu, is_hit=True) for onu in hit)

    drawn = {each["properties"]["id"]: each for each in features(viewer)["finding"]}

    at = {finding_id: each["geometry"]["coordinates"] for finding_id, each in drawn.items()}
    assert at == {branch.id: [-74.08, 4.64], both.id: [-74.08, 4.62], alone.id: [-74.08, 4.63]}
    assert drawn[branch.id]["properties"]["name"].startswith("CTO 2: 3 of 6 ONUs lose")
    pages = [text_of(viewer, f"/boxes/{box.id}/") for box in (plant.splitter, *plant.boxes)]
    shown = [[f'href="/light/{finding.id}/"' in page for finding in (branch, both, alone)] for page in pages]
    assert shown == [[True, True, True], [False, True, True], [True, True, False]]


def test_without_boxes_an_outage_names_the_distances_that_its_fibre_broke_between(
    viewer: Client, plant: SmallPlant
) -> None:
    OnuAttachment.objects.all().delete()
    outage = make_outage(plant.olt, frame=0, slot=7, port=5, scope="pon", cause="fibre")
    for number, onu in enumerate(plant.onus):
        dark = {"run_state": RunState.OFFLINE, "outage": outage} if number >= 3 else {"run_state": RunState.ONLINE}
        OnuReading.objects.create(onu=onu, distance_m=850 + 250 * number, **dark)

    page = text_of(viewer, f"/outages/{outage.id}/")

    assert (
        "Probably broken between 1.4 km and 1.6 km from the OLT: every dark ONU is farther away than all others."
        in page
    )
    assert "ONUs that are dark: 3, of which 0 on known boxes, 1.6 km to 2.1 km from the OLT." in page
    assert "With light: 3, of which 0 on known boxes, 850 m to 1.4 km from the OLT." in page


def test_a_box_at_the_broken_segment_of_an_outage_says_so(viewer: Client, plant: SmallPlant) -> None:
    outage = make_outage(plant.olt, frame=0, slot=7, port=5, scope="pon", cause="fibre")
    for number, onu in enumerate(plant.onus):
        dark = {"run_state": RunState.OFFLINE, "outage": outage} if number >= 3 else {"run_state": RunState.ONLINE}
        OnuReading.objects.create(onu=onu, **dark)

    pages = [text_of(viewer, f"/boxes/{box.id}/") for box in (plant.splitter, *plant.boxes)]

    words = f'href="/outages/{outage.id}/">Outage now: probably broken between S 1 and CTO 2</a>'
    assert [words in page for page in pages] == [True, False, True]


def test_more_boxes_than_fit_are_summed_up_by_area(
    viewer: Client, plant: SmallPlant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("facho.plant.map.MOST_BOXES", 2)

    found = features(viewer)

    assert "box" not in found
    assert sum(each["properties"]["boxes"] for each in found["area"]) == 3


@pytest.mark.parametrize("west", ["", "a", "nan", "-999"])
def test_a_map_without_edges_is_refused(viewer: Client, west: str) -> None:
    assert viewer.get(f"/map/features/?west={west}&south=0&east=1&north=1").status_code == 400


def test_only_the_map_may_load_images_from_elsewhere_and_only_if_reported(
    viewer: Client, plant: SmallPlant, settings: Any
) -> None:
    without = viewer.get("/map/").headers["Content-Security-Policy"]
    settings.FACHO_MAP_TILES = "https://tiles.example.net/{z}/{x}/{y}.png"
    settings.FACHO_MAP_ATTRIBUTION = "© Those who drew it"

    page = viewer.get("/map/")

    assert "tiles.example.net" not in without
    assert "img-src 'self' https://tiles.example.net data:;" in page.headers["Content-Security-Policy"]
    assert "© Those who drew it" in page.content.decode()
    assert "tiles.example.net" not in viewer.get("/boxes/").headers["Content-Security-Policy"]


def test_the_map_costs_no_more_queries_with_many_boxes(
    viewer: Client, plant: SmallPlant, django_assert_max_num_queries: Any
) -> None:
    for number in range(30):
        Box.objects.create(name=f"Box {number}", pon_port=plant.port, latitude=4.0, longitude=-74.0 - number / 100)

    with django_assert_max_num_queries(12):
        viewer.get(WORLD + "&customers=true")
