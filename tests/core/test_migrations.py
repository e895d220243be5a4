"""Migrations leave what is there: tables, columns and rows of every version before stay as they were known."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.apps import apps
from django.db.migrations import Migration, operations
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ProjectState
from django.db.models import Field, ManyToManyField
from django.db.models.fields import NOT_PROVIDED

from facho.core.database import known_migrations

ADDS = (operations.CreateModel, operations.AddIndex, operations.AddConstraint)
# They change what Django says and knows, and nothing in the database.
WORDS = (operations.AlterModelOptions, operations.AlterConstraint)
# Reviewed: they make indexes, functions and rows.
CODE_THAT_ADDS = {
    "create_since_index",
    "create_state_index",
    "create_text_indexes",
    "index_texts",
    "mark_offered",
    "store_outside",
}
# Reviewed: constraints that come back in the same migration under another name, and hold as much.
RENAMED = {"one_open_decay_per_onu": "one_open_per_onu"}
# Tables of nothing but the latest values, which the next poll reads again: they may come back in another layout.
READ_AGAIN = {("onus", "onudata")}
OWN_APPS = {app for app, _name in known_migrations() if apps.get_app_config(app).name.startswith("facho.")}
NAMES_THAT_STAY = {
    "snmp_jobs": "snmp_jobs.SnmpJob",
    "snmp_job_hosts": "snmp_jobs.WorkflowNode",
    "snmp_job_oids": "snmp_jobs.SnmpJobOid",
    "snmp_executions": "executions.Execution",
    "execution_attempts": "executions.ExecutionAttempt",
    "onu_data": "onus.OnuData",
    "quota_tracker": "execution_coordinator.QuotaTracker",
    "quota_violations": "execution_coordinator.QuotaViolation",
    "coordinator_logs": "execution_coordinator.CoordinatorLog",
    "execution_plans": "execution_coordinator.ExecutionPlan",
}


class Step:
    """One migration between the state before it and the state after it."""

    def __init__(self, migration: Migration, before: ProjectState) -> None:
        self.migration, self.before = migration, before
        self.after = migration.mutate_state(before, preserve=True)

    def offences(self) -> list[str]:
        """Name every operation that does more than add."""
        return [f"{self.migration}: {found.describe()}" for found in _flat(self.migration) if not self._adds(found)]

    def _adds(self, operation: Operation) -> bool:
        match operation:
            case operations.AddField():
                return self._is_new_table(operation) or _fills_itself(operation.field)
            case operations.AlterField():
                return self._is_new_table(operation) or _takes_what_is_there(
                    self._field(self.before, operation), self._field(self.after, operation)
                )
            case operations.RemoveIndex() | operations.RemoveConstraint():
                # One that comes back in the same migration was only changed.
                kind = "indexes" if isinstance(operation, operations.RemoveIndex) else "constraints"
                name = RENAMED.get(operation.name, operation.name)
                return name in {left.name for left in self.after.models[self._key(operation)].options[kind]}
            case operations.RunSQL():
                return str(operation.sql).strip().startswith("INSERT INTO")
            case operations.RunPython():
                return operation.code.__name__ in CODE_THAT_ADDS
        return isinstance(operation, (*ADDS, *WORDS)) or self._is_read_again(operation)

    def _is_new_table(self, operation: Operation) -> bool:
        """A table that the same migration makes holds nothing yet."""
        return self._key(operation) not in self.before.models

    def _is_read_again(self, operation: Operation) -> bool:
        if not isinstance(operation, operations.DeleteModel):
            return False
        key = (self.migration.app_label, operation.name.lower())
        return key in READ_AGAIN and key in self.after.models

    def _key(self, operation: Any) -> tuple[str, str]:
        return self.migration.app_label, operation.model_name.lower()

    def _field(self, state: ProjectState, operation: operations.AlterField) -> "Field[Any, Any]":
        return state.models[self._key(operation)].fields[operation.name]


def _flat(migration: Migration) -> Iterator[Operation]:
    for operation in migration.operations:
        if isinstance(operation, operations.SeparateDatabaseAndState):
            yield from (*operation.state_operations, *operation.database_operations)
        else:
            yield operation


def _fills_itself(field: "Field[Any, Any]") -> bool:
    """Tell whether rows of before get a value without anybody's help."""
    has_default = field.has_default() or field.db_default is not NOT_PROVIDED
    return (
        field.null or has_default or isinstance(field, ManyToManyField) or (field.blank and field.empty_strings_allowed)
    )


def _takes_what_is_there(before: "Field[Any, Any]", after: "Field[Any, Any]") -> bool:
    """Tell whether the column is of the same kind and no shorter, and an empty one is filled where it has to be."""
    is_same_kind = type(before) is type(after)
    is_long_enough = (after.max_length or 0) >= (before.max_length or 0)
    return is_same_kind and is_long_enough and (after.null or not before.null or after.has_default())


def steps() -> list[Step]:
    """Play all migrations of the product in their order, those of Django between them."""
    loader = MigrationLoader(None)
    played, state = [], ProjectState(real_apps=loader.unmigrated_apps)
    done: set[tuple[str, str]] = set()
    for target in loader.graph.leaf_nodes():
        for key in loader.graph.forwards_plan(target):
            if key not in done:
                done.add(key)
                step = Step(loader.graph.nodes[key], state)
                state = step.after
                played += [step] if key[0] in OWN_APPS else []
    return played


def test_migrations_only_add() -> None:
    """S0-40: no table, column or row goes, none changes its kind; the specification's models keep their tables.

    Latest values, which the next poll brings back, may change their layout.
    """
    played = steps()

    assert {step.migration.app_label for step in played} == OWN_APPS >= {"hosts", "executions", "onus"}
    assert [offence for step in played for offence in step.offences()] == []
    assert {table: apps.get_model(name)._meta.db_table for table, name in NAMES_THAT_STAY.items()} == {
        table: table for table in NAMES_THAT_STAY
    }


@pytest.mark.parametrize(
    "operation",
    [
        operations.RemoveField("olt", "port"),
        operations.DeleteModel("Olt"),
        operations.RenameField("olt", "port", "udp_port"),
        operations.RunSQL("DROP TABLE hosts_olt"),
        operations.RemoveIndex("pause", "pause_end"),
    ],
    ids=lambda operation: type(operation).__name__,
)
def test_what_takes_away_would_be_seen(operation: Operation) -> None:
    last = steps()[-1].after
    migration = Migration("0999_takes_away", "hosts")
    migration.operations = [operation]

    assert len(Step(migration, last).offences()) == 1
