"""Tables of all lists: sorted by any column, with chosen ones, as files, under saved names, and acted on together."""

import csv
import io
import json
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from accounts.two_groups import World, make_limited, make_world
from api.coordinator_rows import make_violation
from api.rows import make_execution, make_node, make_olt, make_onu, make_user
from dashboard.outage_rows import make_outage
from facho.accounts.models import SavedView
from facho.accounts.roles import Role
from facho.executions.models import OnuRead
from facho.hosts.models import Pause
from facho.hosts.store import active_pauses
from facho.infrastructure.spreadsheet import read_workbook
from facho.onus import search
from facho.onus.models import Onu, OnuCustomer, OnuEvent
from facho.polling.domain.execution_state import ExecutionState
from web.every_address import body_of

pytestmark = pytest.mark.django_db

LISTS = ["onus", "olts", "events", "outages", "executions", "violations"]
FORMULA = "=cmd()|' /C calc'!A0"


@pytest.fixture
def operator() -> Client:
    client = Client(headers={"accept-language": "en"})
    client.force_login(make_user(Role.OPERATOR))
    return client


def page_of(client: Client, address: str, **headers: str) -> str:
    answer = client.get(address, headers=headers)
    assert answer.status_code == 200
    return str(answer.content.decode())


def order_of(page: str, *words: str) -> list[str]:
    return sorted((word for word in words if word in page), key=page.index)


def make_three() -> list[Onu]:
    olt = make_olt("North")
    values = [("AAAA", -2100, 300, "F601"), ("BBBB", -2900, 100, "HG8310"), ("CCCC", -1800, 200, "EG8145")]
    onus = []
    for number, (serial, power, distance, model) in enumerate(values, 1):
        onu = make_onu(
            olt,
            (0, 1, 0, number),
            serial=serial,
            rx_power_cdbm=power,
            distance_m=distance,
            run_state="online",
            model=model,
        )
        OnuCustomer.objects.create(onu=onu, label=f"{model} customer", contract=f"K-{distance}")
        onus.append(onu)
    return onus


@pytest.mark.parametrize(
    ("sort", "serials"),
    [
        ("", "AAAA BBBB CCCC"),
        ("-serial", "CCCC BBBB AAAA"),
        ("rx_power", "BBBB AAAA CCCC"),
        ("distance", "BBBB CCCC AAAA"),
        ("-distance", "AAAA CCCC BBBB"),
        ("customer", "CCCC AAAA BBBB"),
        ("model", "CCCC AAAA BBBB"),
        ("-contract", "AAAA CCCC BBBB"),
        ("nonsense", "AAAA BBBB CCCC"),
    ],
)
def test_onus_are_sorted_by_any_column(viewer: Client, sort: str, serials: str) -> None:
    make_three()

    page = page_of(viewer, f"/onus/?sort={sort}")

    assert order_of(page, "AAAA", "BBBB", "CCCC") == serials.split()


def test_a_long_list_is_sorted_by_indexes_alone(viewer: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    make_three()
    monkeypatch.setattr(search, "MANY", 2)

    page = page_of(viewer, "/onus/?sort=-distance")

    assert 'id="sort-rx_power"' in page
    assert 'id="sort-distance"' not in page
    assert order_of(page, "AAAA", "BBBB", "CCCC") == ["CCCC", "BBBB", "AAAA"]


def test_the_sorted_column_says_so_and_turns(viewer: Client) -> None:
    make_three()

    page = page_of(viewer, "/onus/?sort=rx_power&state=online")

    assert 'aria-sort="ascending"><a id="sort-rx_power" class="sort" href="?sort=-rx_power&amp;state=online"' in page


@pytest.mark.parametrize(
    ("query", "serials"),
    [
        ("rx_min=-25", {"AAAA", "CCCC"}),
        ("rx_min=-25&rx_max=-20", {"AAAA"}),
        ("rx_max=-29", {"BBBB"}),
        ("model=hg83", {"BBBB"}),
        ("tag=vip", {"CCCC"}),
        ("cause=los", {"AAAA"}),
        ("age=1d", {"BBBB"}),
        ("age=over-1d", {"CCCC"}),
        ("rx_min=-25&tag=vip&state=online", {"CCCC"}),
    ],
)
def test_onus_are_narrowed_by_light_model_tag_cause_and_age(viewer: Client, query: str, serials: set[str]) -> None:
    first, second, third = make_three()
    now = timezone.now()
    Onu.objects.filter(pk=first.pk).update(description="x")
    first.reading.__class__.objects.filter(pk=first.pk).update(last_down_cause="los")
    second.reading.__class__.objects.filter(pk=second.pk).update(state_since=now)
    third.reading.__class__.objects.filter(pk=third.pk).update(state_since=now - timedelta(days=3))
    OnuCustomer.objects.filter(onu=third).update(tags="norte, vip")

    page = page_of(viewer, f"/onus/?{query}", **{"HX-Request": "true"})
    link = page.split('id="onus-export" href="')[1].split('"')[0].replace("&amp;", "&")
    saved = {row["serial"] for row in csv.DictReader(body_of(viewer.get(link)).splitlines())}

    assert {serial for serial in ("AAAA", "BBBB", "CCCC") if f">{serial}</a>" in page} == serials == saved


def test_chosen_columns_are_shown_and_kept_by_the_filter(viewer: Client) -> None:
    make_three()

    page = page_of(viewer, "/onus/?col=code&col=contract&state=online")

    assert "K-300" in page
    assert 'data-label="Place"' not in page
    assert '<input type="hidden" name="col" value="contract">' in page


@pytest.mark.parametrize("name", LISTS)
def test_every_list_has_its_tools_and_sorts_by_each_head(viewer: Client, name: str) -> None:
    olt = make_olt("North")
    onu = make_onu(olt, run_state="online")
    OnuEvent.objects.create(olt=olt, pon_port=onu.pon_port, onu=onu, onu_number=1, at=timezone.now(), kind="down")
    make_outage(olt, ended_at=timezone.now())
    make_execution(make_node(olt), ExecutionState.SUCCESS)
    make_violation(olt)
    page = page_of(viewer, f"/{name}/")

    heads = [part.split('"')[0] for part in page.split('class="sort" href="')[1:]]

    assert 'id="columns-tool"' in page
    assert len(heads) >= 4
    for head in heads:
        sorted_page = page_of(viewer, f"/{name}/{head.replace('&amp;', '&')}")
        assert 'aria-sort="' in sorted_page
        assert "North" in sorted_page


@pytest.mark.parametrize("name", [name for name in LISTS if name != "onus"])
@pytest.mark.parametrize("kind", ["csv", "json", "xlsx"])
def test_every_list_is_saved_as_a_file_whose_texts_run_nothing(viewer: Client, name: str, kind: str) -> None:
    olt = make_olt(FORMULA)
    onu = make_onu(olt, run_state="online")
    OnuEvent.objects.create(olt=olt, pon_port=onu.pon_port, onu=onu, onu_number=1, at=timezone.now(), kind="down")
    make_outage(olt, ended_at=timezone.now())
    make_execution(make_node(olt), ExecutionState.SUCCESS)
    make_violation(olt)

    answer: Any = viewer.get(f"/{name}/?export={kind}")

    text = body_of(answer)
    assert answer.headers["Content-Disposition"] == f'attachment; filename="{name}.{kind}"'
    assert FORMULA in text
    if kind == "csv":
        cells = [cell for row in csv.reader(io.StringIO(text)) for cell in row]
        assert not any(cell.startswith("=") for cell in cells)
    elif kind == "json":
        assert len(json.loads(text)) == 1


def test_a_workbook_of_onus_has_texts_and_no_formulas(viewer: Client) -> None:
    make_onu(make_olt(), description=FORMULA)

    answer: Any = viewer.get("/api/v1/onus/export/?format=xlsx")

    rows = dict(read_workbook(_bytes_of(answer)))
    assert FORMULA in rows[2]


def _bytes_of(answer: Any) -> bytes:
    from asgiref.sync import async_to_sync

    async def read() -> bytes:
        return b"".join([part async for part in answer.streaming_content])

    sent = async_to_sync(read)()
    assert b"<f>" not in sent
    return sent


def test_all_that_a_list_finds_is_tagged_and_untagged_again(operator: Client) -> None:
    onus = make_three()
    OnuCustomer.objects.filter(onu=onus[0]).update(tags="vip")

    operator.post("/onus/act/", {"act": "tag", "tag": "vip", "all": "1", "query": "rx_min=-25"})
    page = page_of(operator, "/onus/?tag=vip")
    tagged = set(Onu.objects.filter(customer__tags="vip").values_list("serial", flat=True))
    operator.post("/onus/act/", {"act": "undo", "query": ""})

    assert tagged == {"AAAA", "CCCC"}
    assert "Tag “vip” added to 1 ONUs." in page
    assert set(Onu.objects.filter(customer__tags="vip").values_list("serial", flat=True)) == {"AAAA"}


def test_a_tag_is_removed_from_the_selected(operator: Client) -> None:
    onus = make_three()
    OnuCustomer.objects.update(tags="norte, vip")

    operator.post("/onus/act/", {"act": "untag", "tag": "VIP", "id": [onus[0].pk, onus[1].pk, "x"]})

    assert list(Onu.objects.filter(customer__tags="norte, vip")) == [onus[2]]


def test_the_selected_are_read_as_soon_as_it_can_be(operator: Client) -> None:
    onus = make_three()

    answer = operator.post("/onus/act/", {"act": "read", "id": [onus[0].pk, onus[2].pk]}, follow=True)

    assert set(OnuRead.objects.values_list("onu_id", flat=True)) == {onus[0].pk, onus[2].pk}
    assert "2 ONUs are read as soon as their OLTs are free" in answer.content.decode()


def test_more_than_is_allowed_is_refused_whole(operator: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    make_three()
    monkeypatch.setattr("facho.dashboard.onu.views.MOST_READS", 2)
    monkeypatch.setattr("facho.dashboard.onu.views.MANY", 2)

    for act in ({"act": "read"}, {"act": "tag", "tag": "vip"}):
        answer = operator.post("/onus/act/", {**act, "all": "1"}, follow=True)
        assert "select at most 2 ONUs" in answer.content.decode()

    assert not OnuRead.objects.exists()
    assert not OnuCustomer.objects.exclude(tags="").exists()


def test_the_selected_are_saved_as_a_file(viewer: Client) -> None:
    onus = make_three()

    answer = viewer.post("/onus/act/", {"act": "csv", "id": [onus[1].pk]})

    assert "BBBB" in body_of(viewer.get(answer.headers["Location"]))
    assert "AAAA" not in body_of(viewer.get(answer.headers["Location"]))


@pytest.mark.parametrize("act", ["tag", "untag", "read", "undo"])
def test_viewers_change_nothing(viewer: Client, act: str) -> None:
    onus = make_three()

    assert viewer.post("/onus/act/", {"act": act, "tag": "vip", "id": [onus[0].pk]}).status_code == 403
    assert viewer.post("/olts/act/", {"act": "pause", "minutes": "5", "id": [onus[0].olt_id]}).status_code == 403


@pytest.fixture
def world() -> World:
    return make_world()


def test_what_belongs_to_others_is_not_touched_by_any_act(client: Client, world: World) -> None:
    client.force_login(make_limited(world))
    hidden, shown = world.hidden.ids, world.shown.ids
    Pause.objects.all().delete()

    for selection in ({"id": [hidden["onu"], shown["onu"]]}, {"all": "1", "query": ""}):
        client.post("/onus/act/", {"act": "tag", "tag": "mine", **selection})
        client.post("/onus/act/", {"act": "read", **selection})
    client.post("/olts/act/", {"act": "pause", "minutes": "5", "id": [hidden["olt"], shown["olt"]]})

    assert list(OnuCustomer.objects.values_list("onu_id", "tags")) == [(shown["onu"], "mine")]
    assert list(OnuRead.objects.values_list("onu_id", flat=True)) == [shown["onu"]]
    assert list(Pause.objects.values_list("olt_id", flat=True)) == [shown["olt"]]


def test_undoing_reaches_no_further_than_the_scope_of_now(client: Client, world: World) -> None:
    user = make_limited(world)
    client.force_login(user)
    client.post("/onus/act/", {"act": "tag", "tag": "mine", "id": [world.shown.ids["onu"]]})
    user.profile.olt_groups.set([world.hidden.group])

    client.post("/onus/act/", {"act": "undo"})

    assert OnuCustomer.objects.get().tags == "mine"


def test_selected_olts_are_paused_and_that_is_undone(operator: Client) -> None:
    north, south = make_olt("North"), make_olt("South")

    operator.post("/olts/act/", {"act": "pause", "minutes": "90", "id": [north.pk, south.pk]})
    held = active_pauses(timezone.now()).count()
    page = page_of(operator, "/olts/")
    operator.post("/olts/act/", {"act": "undo"})

    assert held == 2
    assert "2 OLTs paused for 90 minutes." in page
    assert not active_pauses(timezone.now()).exists()


@pytest.mark.parametrize("minutes", ["", "0", "-5", "x", "9999999"])
def test_a_pause_without_a_length_is_refused(operator: Client, minutes: str) -> None:
    operator.post("/olts/act/", {"act": "pause", "minutes": minutes, "id": [make_olt().pk]})

    assert not Pause.objects.exists()


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("", {"North", "South", "Off"}),
        ("state=down", {"South"}),
        ("state=disabled", {"Off"}),
        ("q=nor", {"North"}),
        ("state=paused", {"North"}),
    ],
)
def test_olts_are_narrowed(viewer: Client, query: str, names: set[str]) -> None:
    north = make_olt("North", reachability="up")
    make_olt("South", reachability="down")
    make_olt("Off", enabled=False)
    Pause.objects.create(olt=north, starts_at=timezone.now(), ends_at=timezone.now() + timedelta(hours=1))

    page = page_of(viewer, f"/olts/?{query}", **{"HX-Request": "true"})

    assert {name for name in ("North", "South", "Off") if f">{name}</a>" in page} == names


def test_runs_are_narrowed_by_how_they_ended(viewer: Client) -> None:
    good, bad = make_node(make_olt("Good")), make_node(make_olt("Bad"))
    make_execution(good, ExecutionState.SUCCESS)
    make_execution(bad, ExecutionState.FAILED, failure_kind="timeout")

    page = page_of(viewer, "/executions/?status=FAILED", **{"HX-Request": "true"})

    assert ">Bad</a>" in page
    assert ">Good</a>" not in page
    assert "no answer" in page


def test_a_view_is_saved_shown_renewed_and_deleted(viewer: Client) -> None:
    viewer.post("/views/", {"page": "onus", "name": "Weak ones", "query": "state=weak&sort=rx_power"})
    viewer.post("/views/", {"page": "onus", "name": "Weak ones", "query": "state=weak"})

    box = page_of(viewer, "/views/?page=onus&query=state%3Dweak", **{"HX-Request": "true"})
    view = SavedView.objects.get()
    answer = viewer.post(f"/views/{view.pk}/delete/")

    assert 'href="/onus/?state=weak" aria-current="true"><bdi>Weak ones</bdi>' in box
    assert answer.headers["Location"] == "/onus/?state=weak"
    assert not SavedView.objects.exists()


def test_views_are_ones_own(viewer: Client, operator: Client) -> None:
    viewer.post("/views/", {"page": "onus", "name": "Mine", "query": "state=weak"})

    assert "Mine" not in page_of(operator, "/views/?page=onus")
    assert operator.post(f"/views/{SavedView.objects.get().pk}/delete/").status_code == 404


def test_a_view_leads_nowhere_else(viewer: Client) -> None:
    answer = viewer.post("/views/", {"page": "onus", "name": "x", "query": "//evil.example/\r\nSet-Cookie: a"})

    assert answer.headers["Location"].startswith("/onus/?")
    assert "\n" not in SavedView.objects.get().query
    assert viewer.post("/views/", {"page": "https://evil.example", "name": "x"}).status_code == 404


def test_views_are_few(viewer: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("facho.dashboard.shared.table.MOST_VIEWS", 1)
    viewer.post("/views/", {"page": "onus", "name": "one", "query": ""})
    viewer.post("/views/", {"page": "onus", "name": "two", "query": ""})
    viewer.post("/views/", {"page": "onus", "name": "", "query": ""})

    assert SavedView.objects.count() == 1
