"""Lists of the admin that may be long: nothing is counted to its end, and words are found by an index."""

from typing import Any

import pytest
from django.contrib import admin
from django.db import connection
from django.db.models import Model
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from api.rows import NOW, make_execution, make_node, make_olt, make_onu
from facho.executions.models import Execution, ExecutionAttempt
from facho.infrastructure import admin_pages as infrastructure_admin_pages
from facho.infrastructure.admin_pages import LongListAdmin
from facho.onus.models import Onu, OnuCustomer, OnuData, OnuEvent
from facho.polling.domain.execution_state import ExecutionState
from facho.snmp_jobs.models import WorkflowNode

pytestmark = pytest.mark.django_db


def page_of(client: Client, model: type[Model], **query: Any) -> str:
    place = reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")
    return client.get(place, query).content.decode()


def rows_of(client: Client, model: type[Model], **query: Any) -> int:
    return page_of(client, model, **query).count('class="action-select"')


@pytest.mark.parametrize("model", [Execution, Onu, OnuData, OnuEvent, WorkflowNode])
def test_a_long_list_is_never_counted_to_its_end(administrator: Client, model: type[Model]) -> None:
    assert isinstance(admin.site._registry[model], LongListAdmin)

    with CaptureQueriesContext(connection) as queries:
        page_of(administrator, model, q="olt")

    counts = [query["sql"] for query in queries if "COUNT(" in query["sql"] and model._meta.db_table in query["sql"]]
    assert all("LIMIT 10001" in sql for sql in counts)


def test_a_list_that_is_cut_says_so(administrator: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(infrastructure_admin_pages, "MANY", 2)
    node = make_node()
    for _ in range(2):
        make_execution(node, ExecutionState.SUCCESS)

    whole = page_of(administrator, Execution)
    make_execution(node, ExecutionState.SUCCESS)
    cut = page_of(administrator, Execution)

    assert "2 executions" in whole
    assert "more than 2: narrow the list" in cut


@pytest.mark.parametrize(("words", "found"), [("norte", 1), ("LIGHT", 2), ("get_light", 2), ("nobody", 0)])
def test_executions_are_found_by_olt_and_job(administrator: Client, words: str, found: int) -> None:
    for name in ("Norte", "Sur"):
        make_execution(make_node(make_olt(name), name="Light", slug=f"get_light_{name}"), ExecutionState.SUCCESS)

    assert rows_of(administrator, Execution, q=words) == found


@pytest.mark.parametrize("status", [ExecutionState.RUNNING, ExecutionState.SUCCESS, ExecutionState.FAILED])
def test_executions_are_narrowed_to_a_status(administrator: Client, status: ExecutionState) -> None:
    for each in (ExecutionState.RUNNING, ExecutionState.SUCCESS, ExecutionState.FAILED):
        make_execution(make_node(), each)

    assert rows_of(administrator, Execution, status=status.value) == 1


def test_how_a_run_failed_is_reported_in_words(administrator: Client) -> None:
    run = make_execution(make_node(), ExecutionState.FAILED, failure_kind="refused")
    ExecutionAttempt.objects.create(
        execution=run, number=1, status="FAILED", failure_kind="auth", started_at=NOW, finished_at=NOW
    )

    listed = page_of(administrator, Execution)
    page = administrator.get(reverse("admin:executions_execution_change", args=[run.pk])).content.decode()

    assert ">failed · nothing listens</span>" in listed
    assert '<a href="?failure=tooBig">answers do not fit</a>' in " ".join(listed.split())
    assert "nothing listens" in page
    assert "credentials refused" in page
    assert ">refused<" not in page


def test_a_page_holds_its_rows_in_their_order(administrator: Client) -> None:
    node = make_node()
    runs = [make_execution(node, ExecutionState.SUCCESS) for _ in range(53)]

    second = page_of(administrator, Execution, p=2)

    assert [second.index(f"/execution/{run.pk}/change/") for run in reversed(runs[:3])] == sorted(
        second.index(f"/execution/{run.pk}/change/") for run in runs[:3]
    )
    assert second.count('class="action-select"') == 3


def test_an_execution_is_found_by_its_number(administrator: Client) -> None:
    node = make_node()
    wanted, *_others = [make_execution(node, ExecutionState.SUCCESS) for _ in range(3)]

    assert rows_of(administrator, Execution, q=str(wanted.pk)) == 1
    assert rows_of(administrator, Execution, q="9" * 40) == 0


@pytest.mark.parametrize("model", [Onu, OnuEvent])
def test_words_about_an_onu_find_it_and_what_belongs_to_it(administrator: Client, model: type[Model]) -> None:
    olt = make_olt()
    for number, label in enumerate(("Ana", "Berta")):
        onu = make_onu(olt, (0, 1, 0, number))
        OnuCustomer.objects.create(onu=onu, label=label)
        OnuEvent.objects.create(olt=olt, pon_port=onu.pon_port, onu=onu, onu_number=0, at=NOW, kind="down")

    page = page_of(administrator, model, q="berta")

    assert "1 result" in page
    assert "Enter at least 3 characters." in page_of(administrator, model, q="be")


def test_the_index_begins_with_what_people_do_daily_and_leaves_nothing_out(administrator: Client) -> None:
    page = administrator.get("/admin/").content.decode()

    assert page.index("Every day") < page.index("/admin/hosts/olt/") < page.index("What is polled")
    for model in admin.site._registry:
        place = reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")
        assert f'<a href="{place}"' in page, place
