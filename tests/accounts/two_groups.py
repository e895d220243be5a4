"""Two OLTs in two groups, each with a row of everything that is shown, and every address of the product."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Any

from django.contrib.auth.models import User
from django.contrib.sessions.backends.db import SessionStore
from django.urls import URLPattern, URLResolver, get_resolver
from django.utils import timezone

from api.coordinator_rows import make_log, make_plan, make_tracker, make_violation
from api.rows import make_execution, make_node, make_olt, make_olt_value, make_onu, make_user, make_waiting_onu
from dashboard.outage_rows import make_outage
from facho.accounts.models import LoginSession, Passkey, Profile, SavedView
from facho.accounts.roles import Role
from facho.alerts.models import Alert, AlertChannel, AlertRule, Notice
from facho.alerts.store import offer_default_rules
from facho.api.tokens import create_token
from facho.hosts.models import Olt, OltGroup
from facho.hosts.store import pause
from facho.neighbours.models import Webhook, WebhookDelivery
from facho.onus.models import OnuEvent, OnuReading
from facho.plant.models import (
    Box,
    FindingKinds,
    FindingOnu,
    LightFinding,
    MonthRun,
    OnuAttachment,
    OnuBox,
    OnuMonth,
    Zone,
)
from facho.polling.domain.execution_state import ExecutionState
from facho.zabbix_pollers.models import Poller
from raw_rows import make_raw_value

OID = "1.3.6.1.4.1.9.77"
# What an address calls its parts, where that is not the name of a row.
OTHER_PARTS = {
    "name": "state",
    "token": "999999",
    "section": "x",
    "app_label": "hosts",
    "content_type_id": "1",
    "code": "mail",
    # Of a file.
    "kind": "csv",
    # The port of both sides.
    "frame": "0",
    "slot": "1",
    "port": "3",
    # Of a box in the tree of a port.
    "number": "1",
    # Of the reports.
    "month": "2026-10",
    # Of another product's API, which nothing answers.
    "call": "onu/reboot/1",
}
MONTH = date(2026, 10, 1)


@dataclass
class Side:
    """An OLT of one group and the ids of what belongs to it, by the names that addresses use."""

    group: OltGroup
    olt: Olt
    ids: dict[str, Any] = field(default_factory=dict)

    @property
    def words(self) -> list[str]:
        """Everything that names it or a part of it; jobs are those of all OLTs."""
        return [self.olt.name, f"{self.group.name}SERIAL", f"{self.group.name}-words", self.olt.address]


def make_side(name: str, poller_id: int) -> Side:
    """Make an OLT with a row of everything."""
    now = timezone.now()
    group = OltGroup.objects.create(name=name)
    address = f"203.0.113.{poller_id}"
    olt = make_olt(f"{name}-olt", group=group, address=address, host=address, reachability="up", last_answer_at=now)
    node = make_node(olt, name=f"{name}-job", slug=f"{name.lower()}_job", next_run_at=now - timedelta(minutes=9))
    other = make_node(olt, name=f"{name}-job-2", suspended_at=now, suspend_reason="timeout", next_run_at=now)
    coming = make_node(olt, name=f"{name}-job-3", next_run_at=now + timedelta(minutes=3))
    Poller.objects.create(poller_id=poller_id)
    run = make_execution(coming, poller_id=poller_id)
    make_execution(other, ExecutionState.FAILED, at=now - timedelta(minutes=5))
    onu = make_onu(olt, (0, 1, 3, poller_id), serial=f"{name}SERIAL01", description=f"{name}-words", run_state="online")
    OnuReading.objects.filter(onu=onu).update(state_since=now, rx_power_cdbm=-2900)
    make_raw_value(onu, OID, f"{name}-words", now=now)
    event = OnuEvent.objects.create(
        olt=olt, pon_port=onu.pon_port, onu=onu, onu_number=1, at=now, kind="down", cause="los"
    )
    held = pause(olt, minutes=5, note=f"{name}-words", now=now)
    offer_default_rules()
    rule = AlertRule.objects.exclude(alerts__olt=olt).order_by("id")[0]
    alert = Alert.objects.create(
        rule=rule,
        subject=f"olt:{olt.pk}",
        olt=olt,
        state="firing",
        severity="warning",
        facts={"olt": olt.name},
        place=f"olt:{olt.pk}",
        began_at=now,
        fired_at=now,
    )
    zone = Zone.objects.create(name=f"{name}-words zone", latitude=4.6, longitude=-74.0)
    box = Box.objects.create(
        name=f"{name}-words box", zone=zone, pon_port=onu.pon_port, latitude=4.61, longitude=-74.01 - poller_id / 1000
    )
    OnuAttachment.objects.create(onu=onu, box=box, source="hand")
    OnuBox.objects.create(onu=onu, pon_port=onu.pon_port, number=1, confidence=0.9, events=1)
    finding = LightFinding.objects.create(
        kind=FindingKinds.COMMON_STEP, pon_port=onu.pon_port, since=now, found_at=now, judged_at=now, size_db=-3.1
    )
    FindingOnu.objects.create(finding=finding, onu=onu, is_hit=True, size_db=-3.1)
    OnuMonth.objects.create(
        month=MONTH,
        onu=onu,
        pon_port=onu.pon_port,
        olt=olt,
        up_seconds=2_600_000,
        down_seconds=78_400,
        unknown_seconds=0,
        planned_seconds=0,
        interruptions=2,
        longest_down_seconds=70_000,
        light_cdbm=-2_500,
        lowest_day_cdbm=-2_900,
        weak_days=1,
    )
    ids = {
        "box": box.pk,
        "zone": zone.pk,
        "finding": finding.pk,
        "light-finding": finding.pk,
        "olt": olt.pk,
        "node": node.pk,
        "execution": run.pk,
        "onu": onu.pk,
        "external": onu.serial,
        "pon-port": onu.pon_port_id,
        "event": event.pk,
        "outage": make_outage(olt).pk,
        "waiting-onu": make_waiting_onu(olt, serial=f"{name}SERIAL02").pk,
        "quota": make_tracker(olt, will_miss_at=now).pk,
        "violation": make_violation(olt).pk,
        "plan": make_plan(olt).pk,
        "coordinator-log": make_log(olt, message=f"{name}-words").pk,
        "pause": held.pk,
        "alert": alert.pk,
    }
    make_olt_value(olt, place=f"{name}-words", oid=OID)
    return Side(group, olt, ids)


@dataclass
class World:
    """What is shown and what is hidden, and rows that belong to no OLT."""

    shown: Side
    hidden: Side
    common: dict[str, int]

    def path(self, route: "Route", side: Side) -> str:
        """Write the address of a route for the rows of one side."""
        ids = {**self.common, **side.ids}
        return route.fill(ids)


def make_world() -> World:
    """Make both sides, and a channel with a message about the hidden one."""
    hidden, shown = make_side("Hidden", 1), make_side("Shown", 2)
    MonthRun.objects.create(month=MONTH, covers_until=timezone.now(), finished_at=timezone.now(), is_final=True)
    channel = AlertChannel.objects.create(name="mail", shown_as="mailto", url="mailto://x", signing_key="")
    reported = Notice.objects.create(
        key="n1",
        channel=channel,
        kind="opened",
        severity="warning",
        title=hidden.olt.name,
        body="Hidden-words",
        created_at=timezone.now(),
    )
    reported.alerts.add(hidden.ids["alert"])
    node = shown.olt.workflow.nodes.order_by("id")[0]
    rule = AlertRule.objects.order_by("id")[0]
    somebody = make_user(Role.VIEWER, "somebody")
    view = SavedView.objects.create(user=make_user(name="view-owner"), page="onus", name="Weak", query="state=weak")
    hook = Webhook.objects.create(
        name="crm",
        shown_as="https://crm/…",
        url="https://crm/",
        kinds=["down"],
        olt_group=hidden.group,
        begins_at=timezone.now(),
    )
    tried = WebhookDelivery.objects.create(webhook=hook, is_test=True, created_at=timezone.now())
    stored = SessionStore()
    stored.create()
    session = LoginSession.objects.create(
        session_id=stored.session_key, user=somebody, way="password", begun_at=timezone.now(), seen_at=timezone.now()
    )
    passkey = Passkey.objects.create(
        user=somebody, name="phone", host="x", digest="x", credential=b"", created_at=timezone.now()
    )
    create_token(somebody)
    common = {
        "webhook": hook.pk,
        "delivery": tried.pk,
        "olt-group": shown.group.pk,
        "token": somebody.api_tokens.get().pk,
        "alert-channel": channel.pk,
        "alert-rule": rule.pk,
        "rule": rule.pk,
        "notice": reported.pk,
        "job": node.job_id,
        "user": somebody.pk,
        "session": session.pk,
        "passkey": passkey.pk,
        "view": view.pk,
    }
    return World(shown, hidden, common)


def make_limited(world: World, role: Role = Role.OPERATOR, name: str = "limited") -> User:
    """Make somebody who sees the shown side alone."""
    user = make_user(role, name)
    Profile.objects.create(user=user).olt_groups.add(world.shown.group)
    return user


def token_of(user: User, role: Role | None = None) -> str:
    """Return the header of a new token of a user."""
    return f"Bearer {create_token(user, role=role)}"


def value_question(path: str) -> str:
    """Return what the history of a value has to be asked; nothing for any other address."""
    if "data/history" not in path:
        return ""
    return f"?oid={OID}&index=0.1" if "/olts/" in path else f"?oid={OID}"


@dataclass(frozen=True, slots=True)
class Route:
    """A pattern of the product, as it is written in its module."""

    pattern: str
    view: Any

    @property
    def names(self) -> list[str]:
        """The names of its parts, as rows are named; `pk` is that of the resource before it."""
        return [self._row(name) for name in re.findall(r"<(?:\w+:)?(\w+)>", self.pattern)]

    def fill(self, ids: dict[str, Any]) -> str:
        """Write an address with these ids; a name that is not among them stays as OTHER_PARTS has it."""
        values: Iterator[str] = (str(ids.get(name, OTHER_PARTS.get(name, "1"))) for name in self.names)
        plain = re.sub(r"\(\?P<\w+>[^)]+\)|<[^>]+>", lambda _part: next(values), self.pattern)
        return "/" + plain.replace("^", "").replace("$", "").replace("\\Z", "")

    def _row(self, name: str) -> str:
        if name != "pk":
            return name.removesuffix("_id").replace("pon_port", "pon-port").replace("channel", "alert-channel")
        resource = self.pattern.split("/(?P<pk>")[0].split("^")[-1]
        return {"coordinator/logs": "coordinator-log", "quotas": "quota", "pauses": "pause"}.get(
            resource, resource.removesuffix("s")
        )


def all_routes(patterns: Sequence[Any] | None = None, prefix: str = "") -> Iterator[Route]:
    """Give every pattern that the product answers."""
    for entry in get_resolver().url_patterns if patterns is None else patterns:
        if isinstance(entry, URLPattern):
            yield Route(prefix + str(entry.pattern), entry.callback)
        elif isinstance(entry, URLResolver):
            yield from all_routes(entry.url_patterns, prefix + str(entry.pattern))
