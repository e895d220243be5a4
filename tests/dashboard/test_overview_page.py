"""The first page: who sees it, what it says, and what it costs."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from api.coordinator_rows import make_plan, make_tracker
from api.rows import make_execution, make_leader, make_node, make_olt, make_onu, make_pollers
from dashboard.outage_rows import make_outage
from facho.hosts.models import Brand, OltModel
from facho.hosts.store import pause
from facho.polling.domain.execution_state import ExecutionState
from facho.polling.vendors.loader import load_definitions

pytestmark = pytest.mark.django_db

HTMX = {"HX-Request": "true"}


def text(client: Client, path: str = "/", **headers: str) -> str:
    answer = client.get(path, headers=headers)
    assert answer.status_code == 200
    return str(answer.content.decode())


def test_a_visitor_is_asked_to_log_in() -> None:
    assert Client().get("/").headers["Location"] == "/login/?next=/"


def test_a_page_whose_session_ended_reloads_instead_of_showing_a_login_inside() -> None:
    answer = Client().get("/live/", headers=HTMX)

    assert answer.headers["HX-Refresh"] == "true"
    assert answer.content == b""


def test_an_empty_product_says_the_next_step(viewer: Client) -> None:
    assert "An administrator adds the first one" in text(viewer)


def test_the_part_that_refreshes_is_the_part_that_the_page_began_with(viewer: Client) -> None:
    make_leader()
    make_olt("North")

    page, part = text(viewer), text(viewer, "/live/", **HTMX)

    assert '<section class="numbers"' in page
    assert '<section class="numbers"' in part
    assert "<html" not in part


def test_the_network_comes_before_what_reads_it(viewer: Client) -> None:
    make_leader()
    make_pollers(1)
    make_outage(make_olt("North"))

    page = text(viewer)

    order = [page.index(f'id="{name}-title"') for name in ("outages", "olts", "changes", "pollers", "queue")]
    assert order == sorted(order)


def test_a_stopped_engine_is_said(viewer: Client) -> None:
    make_leader(timezone.now() - timedelta(seconds=31))
    make_olt()

    assert "Polling stopped." in text(viewer)


def test_a_running_engine_is_not_said_to_be_stopped(viewer: Client) -> None:
    make_leader(timezone.now() - timedelta(seconds=5))
    make_olt()

    assert "Polling stopped." not in text(viewer)


def test_a_poller_shows_its_olt_and_master_to_chain_in_order(viewer: Client) -> None:
    """S2-14"""
    make_pollers(1)
    master = make_node(make_olt("North"), name="Discovery")
    member, later = make_node(master=master, name="State"), make_node(master=master, name="Power")
    ran = make_execution(master, ExecutionState.SUCCESS, poller_id=0)
    make_execution(member, poller_id=0, master_execution=ran, chain_position=1)

    page = text(viewer)

    steps = page[page.index('class="steps"') :]
    assert steps.index("Discovery") < steps.index("State") < steps.index(later.name)
    assert 'class="step now">State' in page
    assert ">2/3</span>" in page


def test_an_olt_in_trouble_comes_first_with_its_error_in_words(viewer: Client) -> None:
    node = make_node(make_olt("Zulu", reachability="down", last_error="no answer after 3 tries"))
    make_execution(node, ExecutionState.FAILED, failure_kind="timeout")
    make_olt("Alpha", reachability="up")

    page = text(viewer)

    assert page.index("Zulu") < page.index("Alpha")
    assert "It does not answer. Check its power" in page
    assert "A wrong community looks the same." in page
    assert 'title="no answer after 3 tries"' in page


def test_an_olt_of_unknown_model_shows_its_family(viewer: Client) -> None:
    make_olt("North", vendor="vsol_gpon_v1600g")
    make_olt("South", vendor="removed_since")

    page = text(viewer)

    assert load_definitions()["vsol_gpon_v1600g"].title in page
    assert "vsol_gpon_v1600g" not in page
    assert "removed_since" in page


def test_an_olt_shows_model_onus_and_runs(viewer: Client) -> None:
    model = OltModel.objects.create(brand=Brand.objects.create(name="Huawei"), name="MA5608T")
    olt = make_olt("North", model=model, reachability="up")
    make_onu(olt, (0, 1, 0, 1), run_state="online")
    make_onu(olt, (0, 1, 0, 2), run_state="offline")
    now = timezone.now()
    make_node(olt, last_run_at=now - timedelta(minutes=9), next_run_at=now + timedelta(seconds=630))

    page = text(viewer)

    assert "Huawei MA5608T" in page
    assert '1<span class="muted">/2</span>' in page
    assert "1 off" in page
    assert "min ago" in page
    assert "in 10 min" in page


def test_absent_onus_are_not_counted(viewer: Client) -> None:
    olt = make_olt("North")
    make_onu(olt, is_present=False, absent_since=timezone.now(), run_state="online")

    assert '0<span class="muted">/0</span>' in text(viewer)


def test_a_page_number_that_is_none_shows_the_first_page(viewer: Client) -> None:
    make_olt("North")

    assert "North" in text(viewer, "/?page=x")


def test_more_olts_than_fit_are_paged(viewer: Client) -> None:
    for number in range(60):
        make_olt(f"olt-{number:02}")

    page = text(viewer, "/?page=2")

    assert "51 to 60 of 60" in page
    assert 'hx-get="/live/?page=2"' in page


def test_a_long_queue_shows_its_first_nodes_and_why_they_wait(viewer: Client) -> None:
    make_leader()
    make_pollers(1)
    olt = make_olt("North")
    make_execution(make_node(olt), poller_id=0)
    make_node(olt, name="Power", next_run_at=timezone.now() - timedelta(seconds=9))

    page = text(viewer)

    assert "its OLT is busy" in page
    assert "Power" in page


def test_lines_that_the_queue_leaves_empty_show_the_runs_to_come(viewer: Client) -> None:
    now = timezone.now()
    make_node(make_olt("North"), name="Power", next_run_at=now + timedelta(seconds=630))
    make_node(make_olt("South", enabled=False), name="Serial numbers", next_run_at=now + timedelta(seconds=60))

    queue = text(viewer).split('id="queue-title"')[1]

    assert queue.index("Power") < queue.index("in 10 min")
    assert "Serial numbers" not in queue


def test_a_pause_of_everything_is_said_with_its_end_and_its_note(viewer: Client) -> None:
    make_olt("North")
    pause(None, minutes=30, note="core upgrade", now=timezone.now())

    page = text(viewer)

    assert "Everything is paused." in page
    assert "in 29 min" in page
    assert "core upgrade" in page


def test_a_paused_olt_shows_the_end_of_the_pause_instead_of_its_next_run(viewer: Client) -> None:
    olt = make_olt("North")
    make_node(olt, name="Power", next_run_at=timezone.now() + timedelta(seconds=630))
    make_node(make_olt("South"), next_run_at=timezone.now() + timedelta(seconds=90))
    pause(olt, minutes=30, note="", now=timezone.now())

    page = text(viewer)

    assert "pause ends" in page
    assert "in 10 min" not in page
    assert "Power" not in page
    assert "Everything is paused." not in page


def test_a_retry_is_among_the_next_to_run(viewer: Client) -> None:
    node = make_node(make_olt("North"), name="Power")
    resume_at = timezone.now() + timedelta(seconds=90)
    make_execution(node, ExecutionState.WAITING, resume_at=resume_at, failure_kind="timeout")

    page = text(viewer)

    assert page.index("Power") < page.index(">retry<")


@pytest.mark.parametrize(("path", "queries"), [("/", 37), ("/live/", 28), ("/live/hour/", 13)])
def test_the_number_of_queries_does_not_grow(
    path: str, queries: int, viewer: Client, django_assert_max_num_queries: Callable[[int], AbstractContextManager[Any]]
) -> None:
    make_leader()
    make_pollers(8)
    for number in range(6):
        olt = make_olt(reachability="down", last_error="x")
        make_outage(olt)
        make_plan(olt)
        make_tracker(olt, will_miss_at=timezone.now())
        make_onu(olt, run_state="online")
        master = make_node(olt, next_run_at=timezone.now() - timedelta(seconds=3))
        ran = make_execution(master, ExecutionState.SUCCESS, poller_id=number)
        make_execution(make_node(master=master), poller_id=number, master_execution=ran, chain_position=1)

    with django_assert_max_num_queries(queries):
        text(viewer, path)


@pytest.mark.parametrize("path", ["/", "/live/", "/onus/"])
def test_a_page_holds_no_secret_and_needs_none(path: str, viewer: Client, settings: Any) -> None:
    """S3-24"""
    make_pollers(1)
    olt = make_olt("North", community="canary-7f3a")
    make_onu(olt, state_since=timezone.now())
    make_execution(make_node(olt), poller_id=0)
    settings.FACHO_ENCRYPTION_KEYS = ("Jx3QbnrjJgKn4JhcmxgVqrJKAGQIb8XYEq9XpQqz0hE=",)

    assert "canary" not in text(viewer, path)


def test_the_page_needs_no_script_of_its_own_inside(viewer: Client) -> None:
    page = text(viewer)

    assert page.count("<script") == page.count("<script src=")
    assert "onclick" not in page
