"""The page of the metrics is the answer of /metrics: every name, its labels and its meaning."""

import re

import pytest
from prometheus_client.core import Metric

from api.metrics_world import make_world, scrape
from api.rows import make_leader, make_pollers
from docs.docs_pages import ROOT

PAGE = (ROOT / "docs/metrics.md").read_text()
ROW = re.compile(r"^\| `(facho_\w+)` \| (.*?) ?\| (.+) \|$", re.MULTILINE)
# Bounded by what operators configure, or by the code.
LABELS = {
    *("version", "state", "poller", "at_least_seconds", "reason", "task_type", "olt", "severity", "engine"),
    *("port", "kind", "direction", "scope", "cause"),
}
OTHER_UNITS = re.compile(r"milli|_ms\b|percent|minutes|_hours")


@pytest.fixture
def families(db: None) -> list[Metric]:
    """Every family, each with at least one sample."""
    make_leader()
    make_pollers(1)
    make_world()
    return scrape().families


def name_of(family: Metric) -> str:
    """Return the name as it stands in the text; the parser takes a counter's ending off."""
    return f"{family.name}_total" if family.type == "counter" else family.name


def test_every_series_stands_on_the_page_with_its_labels_and_meaning(families: list[Metric]) -> None:
    told = [(name, tuple(re.findall(r"\w+", labels)), meaning) for name, labels, meaning in ROW.findall(PAGE)]

    answered = [(name_of(family), tuple(sorted(family.samples[0].labels)), family.documentation) for family in families]

    assert [(name, tuple(sorted(labels)), meaning) for name, labels, meaning in told] == answered


def test_names_labels_and_types_are_those_that_prometheus_asks_for(families: list[Metric]) -> None:
    names = [name_of(family) for family in families]

    assert [name for name in names if not name.startswith("facho_") or OTHER_UNITS.search(name)] == []
    assert {family.type for family in families} == {"gauge", "counter"}
    assert {label for family in families for sample in family.samples for label in sample.labels} <= LABELS


def test_every_name_in_a_question_of_the_page_exists(families: list[Metric]) -> None:
    assert set(re.findall(r"\bfacho_\w+", PAGE)) == {name_of(family) for family in families}
