"""The pages in a real Chromium: they refresh themselves, run no foreign script, and fit a phone."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.utils import timezone
from playwright.sync_api import expect
from pytest_django import Settings
from pytest_django.live_server_helper import LiveServer

from api.rows import PASSWORD, make_execution, make_leader, make_node, make_olt, make_onu, make_pollers, make_user
from browser.conftest import PHONE, Visit, Visitor
from facho.accounts.roles import Role
from facho.dashboard.status.views import kept
from facho.hosts.models import Pause
from facho.onus.models import OnuReading
from plant.plant_world import make_plant

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

HOSTILE = '<script>alert(1)</script><img src=x onerror="alert(2)">\x1b[31m=cmd()'
PAGES = ["/", "/onus/", "/login/", "/admin/", "/admin/hosts/olt/", "/admin/snmp_jobs/snmpjob/add/", "/api/v1/docs/"]


@pytest.fixture
def url(live_server: LiveServer) -> str:
    """A product with an OLT, a poller at work, and an ONU whose description means harm."""
    make_user(Role.ADMIN, "ana")
    make_leader(timezone.now() + timedelta(days=1))
    make_pollers(3)
    olt = make_olt("North", reachability="up", vendor="huawei_smartax")
    make_execution(make_node(olt, name="Discovery"), poller_id=0)
    seen = {"run_state": "online", "state_since": timezone.now(), "rx_power_cdbm": -2850, "distance_m": 4321}
    make_onu(olt, serial="HWTC00000001", description=HOSTILE, **seen)
    return str(live_server.url)


def logged_in(visit: Visit, url: str) -> Visit:
    visit.log_in(url, "ana", PASSWORD)
    return visit


@pytest.mark.parametrize("path", PAGES)
def test_a_page_runs_no_script_but_ours_and_asks_nobody_else(url: str, visitor: Visitor, path: str) -> None:
    visit = logged_in(visitor(), url)

    visit.page.goto(url + path)
    visit.page.wait_for_load_state("networkidle" if path != "/" and path != "/onus/" else "load")

    assert visit.complaints == []
    assert visit.strangers(url) == []


@pytest.mark.parametrize("language", [pytest.param("en", marks=pytest.mark.thorough), "es", "pt-br"])
def test_a_phone_has_room_for_every_language(url: str, visitor: Visitor, settings: Settings, language: str) -> None:
    """Also where nobody is logged in: the log-in, and the status page for customers."""
    settings.FACHO_STATUS_PAGE = True
    Pause.objects.create(olt=None, note="", starts_at=timezone.now(), ends_at=timezone.now() + timedelta(hours=3))
    visit = visitor(width=PHONE, language=language, dark=language == "es")
    seen = {}

    def look(path: str) -> None:
        visit.page.goto(url + path)
        visit.keep(f"phone{path.replace('/', '-').rstrip('-')}-{language}")
        seen[path] = (visit.page.locator("html").get_attribute("lang"), visit.width(), visit.faults())

    kept.clear()
    for path in ("/login/", "/status/"):
        look(path)
    logged_in(visit, url)
    for path in ("/", "/onus/", "/account/", "/traps/", "/workbench/"):
        look(path)

    assert seen == dict.fromkeys(seen, (language, PHONE, []))
    assert visit.complaints == []


def test_the_status_page_renews_itself_in_place(url: str, visitor: Visitor, settings: Settings) -> None:
    settings.FACHO_STATUS_PAGE = True
    kept.clear()
    visit = visitor()
    visit.page.clock.install()
    visit.page.goto(f"{url}/status/")
    expect(visit.page.locator("main")).to_contain_text("No zones are shown yet.")
    visit.page.evaluate("window.isSamePage = true")

    make_plant(name="Far ")
    kept.clear()
    visit.page.clock.fast_forward("01:01")

    expect(visit.page.locator("main h2")).to_have_text("Far North")
    assert visit.page.evaluate("window.isSamePage")
    assert visit.complaints == []
    assert visit.strangers(url) == []


def test_the_overview_shows_what_changes_without_being_loaded_again(url: str, visitor: Visitor) -> None:
    visit = logged_in(visitor(), url)
    visit.page.evaluate("window.sameDocument = true")

    OnuReading.objects.update(run_state="offline")

    expect(visit.page.locator("#live tr.offline")).to_have_count(1)
    assert visit.page.evaluate("window.sameDocument") is True


def test_the_list_narrows_while_one_types_and_can_be_gone_back(url: str, visitor: Visitor) -> None:
    visit = logged_in(visitor(), url)
    visit.page.goto(f"{url}/onus/")
    visit.page.evaluate("window.sameDocument = true")

    visit.page.get_by_label("Search", exact=True).fill("nothing like this")

    expect(visit.page.locator("#onus")).to_contain_text("No ONU matches.")
    assert visit.page.url.startswith(f"{url}/onus/?q=nothing")
    assert visit.page.evaluate("window.sameDocument") is True
    visit.page.go_back()
    expect(visit.page.locator("#onus")).to_contain_text("HWTC00000001")


def test_a_lost_connection_is_said_and_so_is_its_return(url: str, visitor: Visitor) -> None:
    visit = logged_in(visitor(), url)
    banner = visit.page.locator("#connection-lost")
    expect(banner).to_be_hidden()

    visit.page.context.set_offline(True)
    expect(banner).to_be_visible()

    visit.page.context.set_offline(False)
    expect(banner).to_be_hidden()


def test_a_session_that_ended_leads_to_the_login(url: str, visitor: Visitor) -> None:
    visit = logged_in(visitor(), url)

    Session.objects.all().delete()

    visit.page.wait_for_url(f"{url}/login/?next=/")


def test_text_that_is_being_selected_is_not_replaced(url: str, visitor: Visitor) -> None:
    visit = logged_in(visitor(), url)
    visit.page.evaluate("window.getSelection().selectAllChildren(document.querySelector('#live .mono'))")

    OnuReading.objects.update(run_state="offline")
    with visit.page.expect_event("console", predicate=lambda message: message.text == "looked"):
        # Longer than a refresh: measured on the page's own clock.
        visit.page.evaluate("setTimeout(() => console.log('looked'), 3000)")
    expect(visit.page.locator("#live tr.offline")).to_have_count(0)

    visit.page.evaluate("window.getSelection().removeAllRanges()")
    expect(visit.page.locator("#live tr.offline")).to_have_count(1)


def test_the_first_administrator_is_made_in_the_browser(live_server: LiveServer, visitor: Visitor) -> None:
    from facho.dashboard.account.views import make_setup_path

    visit = visitor(language="es")
    visit.page.goto(f"{live_server.url}{make_setup_path()}")
    visit.keep("setup-es")
    own_zone = visit.page.evaluate("Intl.DateTimeFormat().resolvedOptions().timeZone")
    assert visit.page.input_value("[name=time_zone]") == own_zone

    visit.page.fill("[name=username]", "ana")
    visit.page.fill("[name=password1]", PASSWORD)
    visit.page.fill("[name=password2]", PASSWORD)
    visit.page.click("main button[type=submit]")

    expect(visit.page.locator("#live #add-first")).to_be_visible()
    assert User.objects.get().is_superuser
    assert visit.complaints == []
