"""Conditions: each has all of its parts, and its default rule reaches every installation once."""

import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.test import Client
from django.urls import reverse

from docs.docs_pages import ROOT, rows
from facho.alerts import conditions
from facho.alerts.condition import DefaultRule
from facho.alerts.conditions import CONDITIONS, sentence_of
from facho.alerts.models import AlertRule, OfferedCondition, Severity
from facho.alerts.store import find_faults, offer_default_rules
from facho.core.database import known_migrations
from facho.core.product import bring_up_to_date
from factories import make_olt

# The migration that knows what was offered before it.
OFFERING = next(key for key in known_migrations() if key[1].endswith("offered_conditions"))
CONDITIONS_THEN = 13


@pytest.fixture
def new_condition(monkeypatch: pytest.MonkeyPatch) -> str:
    """A condition that came with an upgrade."""
    rule = DefaultRule("Warm OLT", Severity.INFO, hold_minutes=3)  # type: ignore[arg-type]  # its name is translated
    monkeypatch.setitem(CONDITIONS, "olt_warm", replace(CONDITIONS["weak_light"], code="olt_warm", default_rule=rule))
    return "olt_warm"


def test_every_file_of_the_folder_is_a_condition_of_its_name() -> None:
    files = {path.stem for path in Path(conditions.__file__).parent.glob("*.py")} - {"__init__"}

    assert files == CONDITIONS.keys()
    assert all(condition.code == code for code, condition in CONDITIONS.items())


def test_every_condition_has_its_row_in_the_docs() -> None:
    documented = [
        re.findall(r"`(\w+)`", row[0])[0] for row in rows(ROOT / "docs/alert-rules.md", heading="## Conditions")
    ]

    assert sorted(documented) == sorted(CONDITIONS)


@pytest.mark.parametrize("code", CONDITIONS)
def test_facts_of_an_older_version_make_a_sentence_too(code: str) -> None:
    assert sentence_of(code, {})


@pytest.mark.parametrize("code", CONDITIONS)
def test_a_rule_may_have_a_threshold_where_the_condition_has_one(code: str) -> None:
    threshold = CONDITIONS[code].threshold

    assert "threshold" in find_faults({"kind": code, "threshold": float("nan")})
    assert bool(find_faults({"kind": code, "clear_margin": 1})) is (threshold is None)
    assert threshold is None or not find_faults({"kind": code, "threshold": threshold.usual})


@pytest.mark.django_db
def test_a_fresh_installation_looks_for_everything_and_notifies_no_one() -> None:
    offer_default_rules()

    made = list(AlertRule.objects.prefetch_related("channels", "escalation_channels"))
    assert sorted(rule.kind for rule in made) == sorted(CONDITIONS)
    assert not any(find_faults(vars(rule)) for rule in made)
    assert not any(rule.channels.exists() for rule in made)


@pytest.mark.django_db
def test_an_upgrade_adds_the_rule_of_the_new_condition_alone(new_condition: str) -> None:
    OfferedCondition.objects.bulk_create(OfferedCondition(kind=kind) for kind in CONDITIONS if kind != new_condition)

    bring_up_to_date()

    rule = AlertRule.objects.get()
    assert (rule.kind, rule.name, rule.severity, rule.hold_minutes) == (new_condition, "Warm OLT", "info", 3)


@pytest.mark.django_db
def test_deleted_and_changed_rules_stay_so(new_condition: str) -> None:
    offer_default_rules()
    AlertRule.objects.filter(kind=new_condition).delete()
    AlertRule.objects.filter(kind="weak_light").update(name="Dark", threshold=-25)
    before = list(AlertRule.objects.order_by("id").values())

    offer_default_rules()

    assert list(AlertRule.objects.order_by("id").values()) == before


@pytest.mark.django_db
def test_nothing_is_written_when_everything_was_offered(django_assert_num_queries: Any) -> None:
    offer_default_rules()

    with django_assert_num_queries(1):
        offer_default_rules()


@pytest.mark.django_db
def test_a_condition_that_has_a_rule_gets_no_other(new_condition: str) -> None:
    AlertRule.objects.create(name="My own", kind=new_condition)

    offer_default_rules()

    assert AlertRule.objects.get(kind=new_condition).name == "My own"


@pytest.mark.django_db
def test_a_taken_name_is_told_apart_by_the_condition(new_condition: str) -> None:
    AlertRule.objects.create(name="Warm OLT", kind="weak_light")

    offer_default_rules()

    assert AlertRule.objects.get(kind=new_condition).name == "Warm OLT (olt_warm)"


@pytest.mark.django_db
def test_a_new_condition_is_offered_by_forms_and_needs_no_migration(admin_client: Client) -> None:
    page = admin_client.get(reverse("admin:alerts_alertrule_add")).content.decode()

    assert all(f'<option value="{code}">' in page for code in CONDITIONS)
    assert "choices" not in AlertRule._meta.get_field("kind").deconstruct()[3]


@pytest.mark.django_db(transaction=True)
def test_two_processes_that_start_at_once_add_each_rule_once() -> None:
    together = Barrier(2)

    def start() -> None:
        together.wait(timeout=10)
        try:
            offer_default_rules()
        finally:
            connection.close()

    with ThreadPoolExecutor(2) as pool:
        starts = [pool.submit(start) for _ in range(2)]

    assert [started.exception() for started in starts] == [None, None]
    assert sorted(AlertRule.objects.values_list("kind", flat=True)) == sorted(CONDITIONS)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("leaves", ["rules", "olts", "nothing"])
def test_an_installation_in_use_counts_as_offered_everything_of_before(leaves: str) -> None:
    executor = MigrationExecutor(connection)
    executor.migrate(executor.loader.get_migration(*OFFERING).dependencies)  # type: ignore[arg-type]  # of tuples too
    try:
        if leaves == "rules":
            AlertRule.objects.create(name="Dark", kind="weak_light")
        elif leaves == "olts":
            make_olt()
    finally:
        current = MigrationExecutor(connection)
        current.migrate(current.loader.graph.leaf_nodes())

    offered = set(OfferedCondition.objects.values_list("kind", flat=True))

    assert len(offered) == (0 if leaves == "nothing" else CONDITIONS_THEN)
    assert offered <= CONDITIONS.keys()
