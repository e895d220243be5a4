"""The admin: who enters, what it shows of secrets, and what saving writes."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import timedelta
from typing import Any

import pytest
from django.contrib import admin
from django.db import connection
from django.db.models import Model
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from api.rows import (
    NOW,
    make_execution,
    make_node,
    make_olt,
    make_olt_value,
    make_onu,
    make_pollers,
    make_user,
    make_waiting_onu,
)
from facho.accounts.roles import Role
from facho.alerts.models import Alert, AlertChannel, AlertRule, Notice
from facho.api.tokens import create_token
from facho.execution_coordinator.models import CoordinatorLog, ExecutionPlan, QuotaTracker, QuotaViolation
from facho.executions.models import Execution, ExecutionAttempt
from facho.hosts.models import Brand, Olt, OltGroup, OltModel
from facho.hosts.store import pause
from facho.infrastructure.secrets import Secret
from facho.onus.models import OnuEvent, Outage
from facho.polling.domain.execution_state import ExecutionState
from facho.snmp_jobs.models import SnmpJob, SnmpJobOid, WorkflowNode
from raw_rows import make_raw_value

pytestmark = pytest.mark.django_db

CANARY = "canary-7f3a"
OURS = [model for model in admin.site._registry if model.__module__.startswith("facho.")]
OLT_INPUTS = {
    "name": "North",
    "host": "127.0.0.9",
    "port": "161",
    "vendor": "huawei_smartax",
    "enabled": "on",
    "snmp_version": "2c",
    "new_community": CANARY,
}


def address(model: type[Model], page: str, *arguments: object) -> str:
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_{page}", args=arguments)


def populate() -> None:
    """Make a row of everything that has a page."""
    model = OltModel.objects.create(brand=Brand.objects.create(name=f"B{Olt.objects.count()}"), name="M")
    olt = make_olt(model=model, group=OltGroup.objects.create(name=f"G{Olt.objects.count()}"))
    onu = make_onu(olt, run_state="online", rx_power_cdbm=-2000)
    make_raw_value(onu)
    OnuEvent.objects.create(olt=olt, pon_port=onu.pon_port, onu=onu, onu_number=0, at=NOW, kind="down", cause="los")
    outage = {"scope": "pon", "cause": "fibre", "affected": 3, "down": 3}
    Outage.objects.create(olt=olt, started_at=NOW, resumed_at=NOW, **outage)
    make_olt_value(olt)
    make_waiting_onu(olt)
    master = make_node(olt)
    SnmpJobOid.objects.create(job=master.job, oid="1.3.6.1")
    ran = make_execution(master, ExecutionState.SUCCESS, result={"onus": 1})
    make_execution(make_node(master=master), master_execution=ran, chain_position=1)
    ExecutionAttempt.objects.create(execution=ran, number=1, status="SUCCESS", started_at=NOW, finished_at=NOW)
    hour = {"period_start": NOW, "period_end": NOW + timedelta(hours=1)}
    QuotaTracker.objects.create(olt=olt, task_type="discovery", **hour)
    QuotaViolation.objects.create(olt=olt, severity="HIGH", report={"lost": 2}, **hour)
    ExecutionPlan.objects.create(olt=olt, **hour)
    CoordinatorLog.objects.create(olt=olt, event_type="TASK_ADDED", message="added", details={"a": 1})
    create_token(make_user())
    pause(olt, minutes=30, note="works", now=NOW)
    populate_alerts(olt)


def populate_alerts(olt: Olt) -> None:
    """Make a rule, what it found, a channel and a message."""
    name = f"A{olt.pk}"
    channel = AlertChannel.objects.create(name=name, url=Secret(CANARY), signing_key=Secret(CANARY))
    rule = AlertRule.objects.create(name=name, kind="olt_unreachable")
    Alert.objects.create(
        rule=rule, subject=name, olt=olt, severity="warning", state="firing", began_at=NOW, fired_at=NOW
    )
    Notice.objects.create(key=name, channel=channel, kind="opened", severity="warning", title="T", created_at=NOW)


def raw_community() -> str:
    with connection.cursor() as cursor:
        cursor.execute("SELECT community FROM hosts_olt")
        return str(cursor.fetchone()[0])


@pytest.mark.parametrize("role", [Role.VIEWER, Role.OPERATOR])
def test_only_staff_enters(role: Role) -> None:
    """S3-25"""
    client = Client()
    client.force_login(make_user(role))

    assert client.get("/admin/").status_code == 302


@pytest.mark.parametrize("model", OURS)
def test_every_list_shows_its_rows_without_a_secret(administrator: Client, model: type[Model]) -> None:
    """S3-24"""
    make_pollers(1)
    populate()

    answer = administrator.get(address(model, "changelist"))

    assert answer.status_code == 200
    assert b'class="row1"' in answer.content or b'id="result_list"' in answer.content
    assert CANARY.encode() not in answer.content


@pytest.mark.parametrize("model", OURS)
def test_every_row_has_a_page_without_a_secret(administrator: Client, model: type[Model]) -> None:
    """S3-24"""
    make_pollers(1)
    populate()
    row = model._default_manager.values_list("pk", flat=True)[0]

    answer = administrator.get(address(model, "change", row))

    assert answer.status_code == 200
    assert CANARY.encode() not in answer.content
    assert b"gAAAA" not in answer.content


@pytest.mark.parametrize("page", ["changelist", "change"])
@pytest.mark.parametrize("model", OURS)
def test_a_lost_encryption_key_closes_no_page(
    administrator: Client, model: type[Model], page: str, settings: Any
) -> None:
    make_pollers(1)
    populate()
    settings.FACHO_ENCRYPTION_KEYS = ("Jx3QbnrjJgKn4JhcmxgVqrJKAGQIb8XYEq9XpQqz0hE=",)
    row = [] if page == "changelist" else [model._default_manager.values_list("pk", flat=True)[0]]

    assert administrator.get(address(model, page, *row)).status_code == 200


@pytest.mark.parametrize("model", OURS)
def test_the_number_of_queries_of_a_list_does_not_grow(
    administrator: Client,
    model: type[Model],
    django_assert_max_num_queries: Callable[[int], AbstractContextManager[Any]],
) -> None:
    make_pollers(5)
    for _ in range(5):
        populate()

    with django_assert_max_num_queries(11):
        administrator.get(address(model, "changelist"))


def test_a_new_olt_is_resolved_encrypted_and_given_its_vendors_jobs(administrator: Client) -> None:
    """S3-24"""
    answer = administrator.post(address(Olt, "add"), OLT_INPUTS | {"host": "localhost"})

    assert answer.status_code == 302
    olt = Olt.objects.get()
    assert (olt.address, olt.community.reveal()) == ("127.0.0.1", CANARY)
    assert CANARY not in raw_community()
    assert WorkflowNode.objects.filter(workflow__olt=olt, next_run_at__isnull=False).exists()


def test_an_olt_to_be_recognised_waits_for_its_jobs(administrator: Client) -> None:
    administrator.post(address(Olt, "add"), OLT_INPUTS | {"vendor": ""})

    assert Olt.objects.get().vendor == ""
    assert not WorkflowNode.objects.exists()


def test_an_empty_secret_keeps_the_stored_one(administrator: Client) -> None:
    olt = make_olt("North", host="127.0.0.9", address="127.0.0.9")
    inputs = OLT_INPUTS | {"name": "Norte", "host": olt.host, "new_community": ""}

    administrator.post(address(Olt, "change", olt.pk), inputs)
    elsewhere = administrator.post(address(Olt, "change", olt.pk), inputs | {"host": "127.0.0.10"})

    assert "community: enter it again" in elsewhere.content.decode()
    olt.refresh_from_db()
    assert (olt.name, olt.host, olt.community.reveal()) == ("Norte", inputs["host"], CANARY)


def test_a_secret_that_was_filled_in_replaces_the_stored_one(administrator: Client) -> None:
    olt = make_olt("North")

    administrator.post(address(Olt, "change", olt.pk), OLT_INPUTS | {"new_community": "another"})

    assert Olt.objects.get().community.reveal() == "another"


def test_saving_leaves_alone_what_the_engine_wrote_meanwhile(administrator: Client, monkeypatch: Any) -> None:
    olt = make_olt("North", reachability="unknown")

    def engine_writes(*_: object, **__: object) -> tuple[str, ...]:
        Olt.objects.update(reachability="up", last_error="late")
        return ()

    monkeypatch.setattr("facho.hosts.olt_form.find_faults", engine_writes)
    administrator.post(address(Olt, "change", olt.pk), OLT_INPUTS)

    olt.refresh_from_db()
    assert (olt.reachability, olt.last_error, olt.address) == ("up", "late", "127.0.0.9")


def test_a_host_is_looked_up_while_no_transaction_is_open(administrator: Client, monkeypatch: Any) -> None:
    open_before, open_meanwhile = len(connection.savepoint_ids), []

    def look_up(hosts: set[str]) -> dict[str, str]:
        open_meanwhile.append(len(connection.savepoint_ids))
        return dict.fromkeys(hosts, "127.0.0.9")

    monkeypatch.setattr("facho.hosts.admin.resolve_all", look_up)
    administrator.post(address(Olt, "add"), OLT_INPUTS | {"host": "north.example"})

    assert Olt.objects.get().address == "127.0.0.9"
    assert open_meanwhile == [open_before]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"host": "no-such-host.invalid"}, "does not resolve"),
        ({"host": "127.0.0.5"}, "OLT &quot;South&quot; already has address 127.0.0.5"),
        ({"new_community": ""}, "community is missing"),
        ({"snmp_version": "3"}, "SNMPv3 needs a user"),
        ({"snmp_version": "3", "v3_user": "u", "v3_auth_protocol": "SHA"}, "authentication key is missing"),
        ({"port": "0"}, "greater than or equal to 1"),
        ({"name": "South"}, "already exists"),
    ],
)
def test_what_cannot_work_is_said_beside_the_form(administrator: Client, change: dict[str, str], words: str) -> None:
    make_olt("South", address="127.0.0.5")

    page = administrator.post(address(Olt, "add"), OLT_INPUTS | change).content.decode()

    assert words in page
    assert CANARY not in page
    assert Olt.objects.count() == 1


def test_another_rhythm_puts_a_node_on_another_grid(administrator: Client) -> None:
    """S4-08"""
    node = make_node(next_run_at=NOW)

    administrator.post(
        address(WorkflowNode, "change", node.pk), {"enabled": "on", "interval_seconds": 60, "priority": 50}
    )

    node.refresh_from_db()
    assert node.interval_seconds == 60
    assert node.next_run_at is not None
    assert node.next_run_at - timezone.now() <= timedelta(seconds=120)


def test_a_chained_node_needs_its_master_first(administrator: Client) -> None:
    master = make_node()
    job = SnmpJob.objects.create(name="Chained", slug="chained", query_type="get", master_job=master.job)
    inputs = {"job": job.pk, "enabled": "on", "interval_seconds": 60, "priority": 50}

    elsewhere = administrator.post(address(WorkflowNode, "add"), inputs | {"workflow": make_node().workflow.pk})
    here = administrator.post(address(WorkflowNode, "add"), inputs | {"workflow": master.workflow.pk})

    assert b"add that first" in elsewhere.content
    assert here.status_code == 302
    assert WorkflowNode.objects.get(job=job).master_node == master


def test_nodes_are_run_now_except_those_of_a_chain(administrator: Client) -> None:
    """S0-35"""
    master = make_node()
    member = make_node(master=master)

    answer = administrator.post(
        address(WorkflowNode, "changelist"),
        {"action": "run_now", "_selected_action": [master.pk, member.pk]},
        follow=True,
    )

    assert b"1 node will run now." in answer.content
    assert list(WorkflowNode.objects.exclude(run_requested_at=None)) == [master]


def test_nobody_writes_what_the_engine_writes(administrator: Client) -> None:
    populate()

    assert administrator.get(address(QuotaTracker, "add")).status_code == 403
    assert administrator.post(address(QuotaTracker, "delete", QuotaTracker.objects.get().pk)).status_code == 403


def test_plans_have_the_specifications_name(administrator: Client) -> None:
    page = administrator.get("/admin/", headers={"accept-language": "es"}).content.decode()

    assert "Planes de Ejecución" in page


def test_an_olt_that_is_being_polled_cannot_be_deleted(administrator: Client) -> None:
    """Its claim would vanish with it, and another row for the same device could be polled beside it."""
    node = make_node()
    execution = make_execution(node)
    url = reverse("admin:hosts_olt_delete", args=[node.workflow.olt_id])

    assert "is being polled" in administrator.get(url).content.decode()
    assert administrator.post(url, {"post": "yes"}).status_code == 200
    assert Olt.objects.exists()

    Execution.objects.filter(id=execution.id).update(status="SUCCESS", finished_at=timezone.now())
    assert administrator.post(url, {"post": "yes"}).status_code == 302
    assert not Olt.objects.exists()


def test_who_saves_a_moment_later_is_reported_so(administrator: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the checks of the form and its row, somebody else stores an OLT of that name."""
    save = Olt.save

    def save_after_another(olt: Olt, **options: Any) -> None:
        monkeypatch.setattr(Olt, "save", save)
        make_olt(olt.name)
        olt.save(**options)

    monkeypatch.setattr(Olt, "save", save_after_another)

    answer = administrator.post(address(Olt, "add"), OLT_INPUTS, follow=True)

    assert answer.redirect_chain == [(address(Olt, "add"), 302)]
    assert "somebody else" in answer.content.decode()
    assert not Olt.objects.exists()


def test_one_changes_ones_password_on_the_page_of_the_account(admin_client: Client) -> None:
    """The admin's own page asked for a file that is not there."""
    answer = admin_client.get("/admin/password_change/")

    assert (answer.status_code, answer.headers["Location"]) == (302, "/account/")
