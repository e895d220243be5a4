"""Light findings, in a real Chromium: the list, the page of a finding, the tree and the place of a break."""

from datetime import timedelta

import numpy as np
import pytest
from django.db.models import F
from django.utils import timezone
from playwright.sync_api import expect
from pytest_django.live_server_helper import LiveServer

from api.rows import PASSWORD, make_olt, make_user
from browser.conftest import EVERY_WINDOW, Visitor
from dashboard.outage_rows import make_outage
from facho.accounts.roles import Role
from facho.hosts.models import Reachability
from facho.onus.history import Samples, append
from facho.onus.history_models import Metric
from facho.onus.models import OnuReading
from facho.plant.models import FindingKinds, LightFinding, OnuAttachment, OnuBox, TreeCorrection
from facho.plant.tree import save_tree
from facho.plant.watch import SETTLED, LightWatcher
from plant.plant_world import SmallPlant, make_plant

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]
POLLS, FIVE_MINUTES = 15, timedelta(minutes=5)


@pytest.fixture
def plant() -> SmallPlant:
    """A port with a box that lost 3 dB, an ONU that decays, and a cut behind the other box."""
    plant = make_plant(make_olt(reachability=Reachability.UP))
    began, rng = timezone.now() - POLLS * FIVE_MINUTES - SETTLED, np.random.default_rng(3)
    outage = make_outage(plant.olt, slot=7, port=5, affected=3, down=3)
    for number, onu in enumerate(plant.onus):
        dark = {"run_state": "offline", "outage": outage}
        lit = {"run_state": "online", "rx_power_cdbm": -2300}
        OnuReading.objects.create(onu=onu, distance_m=1_000 + 40 * number, **(dark if number >= 3 else lit))
    ids = [onu.id for onu in plant.onus]
    for poll in range(POLLS):
        powers = [-20 - 3.1 * (number < 3 and poll >= POLLS - 3) + rng.normal(0, 0.04) for number in range(len(ids))]
        values = {Metric.RX_POWER: powers, Metric.OLT_RX_POWER: [power - 2 for power in powers]}
        append(began + poll * FIVE_MINUTES, Samples.of(ids, [plant.port.id] * len(ids), values))
    watcher = LightWatcher()
    while watcher.look(timezone.now()):
        pass
    now = timezone.now()
    forecast = {"days_soonest": 9.2, "days_likely": 11.0, "days_latest": 14.1, "level_dbm": -25.6}
    about = {"pon_port": plant.port, "since": now - timedelta(days=9), "found_at": now, "judged_at": now}
    LightFinding.objects.create(
        kind=FindingKinds.DECAY, onu=plant.onus[5], size_db=0.12, confidence=0.8, **about, **forecast
    )
    save_tree(plant.port.id)
    return plant


@EVERY_WINDOW
def test_a_tree_is_corrected_and_the_correction_taken_back(
    live_server: LiveServer, visitor: Visitor, plant: SmallPlant, language: str, width: int
) -> None:
    OnuAttachment.objects.all().delete()
    save_tree(plant.port.id)
    box_of = {box.onu_id: box.number for box in OnuBox.objects.all()}
    (moved, *_others), far = plant.onus, plant.onus[5]
    visit = visitor(language=language, width=width)
    make_user(Role.OPERATOR, "ana")
    visit.log_in(live_server.url, "ana", PASSWORD)
    visit.page.goto(f"{live_server.url}/olts/{plant.olt.id}/ports/0/7/5/")
    corrected = visit.page.locator("#tree rect.corrected")
    expect(corrected).to_have_count(0)

    visit.page.click("#correct-tree summary")
    visit.page.check(f"#correct-tree input[value='{moved.id}']")
    visit.page.select_option("#tree-target", str(box_of[far.id]))
    visit.keep(f"light-tree-correct-{language}-{width}")
    assert visit.width() == width
    assert visit.faults() == []
    visit.page.click("#correct-tree button[type=submit]")

    remove = visit.page.locator(f"#tree-remove-{TreeCorrection.objects.get().id}")
    expect(remove).to_be_visible()
    expect(corrected).not_to_have_count(0)
    assert OnuBox.objects.get(onu=moved).number == OnuBox.objects.get(onu=far).number
    visit.keep(f"light-tree-corrected-{language}-{width}")
    assert visit.width() == width
    assert visit.faults() == []
    remove.click()
    expect(remove).to_have_count(0)
    expect(corrected).to_have_count(0)
    assert {box.onu_id: box.number for box in OnuBox.objects.all()} == box_of
    assert visit.complaints == []


def test_an_outage_without_boxes_shows_the_distances_between_which_it_broke(
    live_server: LiveServer, visitor: Visitor, plant: SmallPlant
) -> None:
    OnuAttachment.objects.all().delete()
    OnuReading.objects.filter(onu__in=plant.onus[3:]).update(distance_m=F("distance_m") + 2_000)
    visit = visitor()
    make_user(Role.VIEWER, "ana")
    visit.log_in(live_server.url, "ana", PASSWORD)

    visit.page.goto(f"{live_server.url}/outages/{OnuReading.objects.exclude(outage=None)[0].outage_id}/")

    expect(visit.page.locator("#where")).to_contain_text("between 1.1 km and 3.1 km from the OLT")
    visit.page.click("#where-evidence summary")
    expect(visit.page.locator("#where-evidence")).to_contain_text("ONUs that are dark: 3")
    visit.keep("light-outage-by-distance")
    assert visit.faults() == []


@EVERY_WINDOW
def test_every_sentence_of_light_opens_to_its_plot_and_numbers(
    live_server: LiveServer, visitor: Visitor, plant: SmallPlant, language: str, width: int
) -> None:
    visit = visitor(language=language, width=width)
    make_user(Role.OPERATOR, "ana")
    visit.log_in(live_server.url, "ana", PASSWORD)
    step = LightFinding.objects.get(kind=FindingKinds.COMMON_STEP)
    address = f"{live_server.url}/light/"

    visit.page.goto(address)
    visit.page.click(f"#finding-{step.id} summary")
    visit.keep(f"light-{language}-{width}")
    assert visit.width() == width
    assert visit.faults() == []
    visit.page.click(f"#plot-{step.id}")
    visit.page.wait_for_url(f"{address}{step.id}/")
    expect(visit.page.locator("table th[scope=row]")).to_have_count(4)
    visit.keep(f"light-finding-{language}-{width}")
    assert visit.width() == width
    assert visit.faults() == []
    visit.page.goto(f"{live_server.url}/olts/{plant.olt.id}/ports/0/7/5/")
    visit.page.click("#tree-evidence summary")
    visit.page.locator("#tree").scroll_into_view_if_needed()
    visit.keep(f"light-tree-{language}-{width}")
    assert visit.width() == width
    assert visit.faults() == []
    box = OnuBox.objects.get(onu=plant.onus[0]).number
    visit.page.locator(f"#tree-box-{box}").click()
    visit.page.wait_for_url(f"{live_server.url}/ports/{plant.port.id}/tree/{box}/")
    expect(visit.page.locator(f"#box-onu-{plant.onus[0].id}")).to_be_visible()
    visit.keep(f"light-tree-box-{language}-{width}")
    assert visit.width() == width
    assert visit.faults() == []
    visit.page.goto(f"{live_server.url}/map/")
    expect(visit.page.locator(f"#map-list a[href='/light/{step.id}/']")).to_be_visible()
    visit.keep(f"light-map-{language}-{width}")
    visit.page.goto(f"{live_server.url}/boxes/{plant.boxes[0].id}/")
    expect(visit.page.locator(f"#evidence-{step.id}")).to_be_visible()
    visit.keep(f"light-box-{language}-{width}")
    assert visit.width() == width
    assert visit.faults() == []
    visit.page.goto(f"{live_server.url}/olts/{plant.olt.id}/ports/0/7/5/")
    visit.page.click("#tree-evidence summary")
    visit.page.click(f"#tree-evidence a[href='/light/{step.id}/']")
    visit.page.wait_for_url(f"{address}{step.id}/")
    visit.page.goto(f"{live_server.url}/outages/{OnuReading.objects.exclude(outage=None)[0].outage_id}/")
    visit.page.click("#where-evidence summary")
    visit.keep(f"light-outage-{language}-{width}")
    assert visit.width() == width
    assert visit.faults() == []
    assert visit.complaints == []
    assert visit.strangers(live_server.url) == []
