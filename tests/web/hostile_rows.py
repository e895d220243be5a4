"""Rows of everything, whose every text means harm to a browser, a spreadsheet or a terminal."""

import re
from typing import Any

from django.apps import apps
from django.db.models import CharField, Field, JSONField, Model, TextField

from accounts.two_groups import World, make_world
from facho.infrastructure.secrets import SecretField
from facho.onus.models import Onu, OnuCustomer, OnuEvent

# The worst comes first: a column of 32 characters still holds a formula and a tag.
PAYLOAD = "=<img src=x onerror=alert(2)>{}|' /C calc'!A0 <script>alert(1)</script> \"><svg onload=alert(3)> "
# What a terminal obeys, or shows in another order than it is written.
CONTROLS = "\x1b[31m\x07\u202e\x9b31m\x7f"
LONG = 10_000
# What decides how a row is read or found, and is never a device's text.
OWN_WORDS = {
    "accounts.Profile.time_zone",
    "alerts.Alert.place",
    "alerts.Alert.subject",
    "alerts.AlertChannel.language",
    "alerts.Notice.key",
    "api.ApiToken.digest",
    "api.ApiToken.role",
    "executions.Execution.failure_kind",
    "executions.ExecutionAttempt.failure_kind",
    "hosts.Olt.vendor",
    "hosts.Olt.v3_auth_protocol",
    "hosts.Olt.v3_priv_protocol",
    "snmp_jobs.SnmpJob.vendor",
    "snmp_jobs.WorkflowNode.suspend_reason",
    "zabbix_pollers.LeaderLease.name",
}
DATE = re.compile(r"\d{4}-\d\d-\d\dT")


def make_hostile_world(controls: str = "") -> World:
    """Make a row of everything that is shown, and let every text of it mean harm."""
    world = make_world()
    onu = Onu.objects.get(pk=world.shown.ids["onu"])
    OnuCustomer.objects.create(onu=onu)
    OnuEvent.objects.filter(onu=onu).update(kind="description_changed")
    for model in apps.get_models():
        if model.__module__.startswith("facho."):
            poison(model, controls)
    return world


def poison(model: type[Model], controls: str) -> None:
    """Replace every text of a table."""
    columns = [field for field in model._meta.concrete_fields if is_reported(model, field)]
    for row in model._default_manager.only("pk", *(field.name for field in columns)):
        values = {field.name: worst(field, row, controls) for field in columns}
        if values:
            model._default_manager.filter(pk=row.pk).update(**values)


def is_reported(model: type[Model], field: "Field[Any, Any]") -> bool:
    """Tell whether a column may hold what somebody else wrote."""
    if not isinstance(field, CharField | TextField | JSONField) or isinstance(field, SecretField):
        return False
    return not field.choices and not field.primary_key and f"{model._meta.label}.{field.name}" not in OWN_WORDS


def worst(field: "Field[Any, Any]", row: Model, controls: str) -> Any:
    """Write the worst that fits into a column; rows stay different from each other."""
    text = PAYLOAD.format(f"{row.pk}{controls}")
    if isinstance(field, JSONField):
        return poisoned(getattr(row, field.name), text)
    return (text + "A" * LONG)[: field.max_length or LONG]


def poisoned(value: Any, text: str) -> Any:
    """Replace every text within a value; dates stay dates, since nobody else writes those."""
    match value:
        case dict():
            return {key: poisoned(item, text) for key, item in value.items()}
        case list():
            return [poisoned(item, text) for item in value]
        case str() if not DATE.match(value):
            return text
        case _:
            return value
