"""The page of the metrics is the answer of /metrics: every name, its labels and its meaning."""

import re
import subprocess
import tomllib
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import yaml
from django.urls import resolve
from prometheus_client.core import Metric

from api.metrics_world import Scraped, make_world, scrape
from api.rows import make_leader, make_pollers
from docs.docs_pages import ROOT, blocks
from facho.neighbours.onu_metrics import MEASUREMENT, known_onus, write_influx, write_prometheus
from facho.onus.models import Onu, OnuReading
from neighbours.line_protocol import read_line_protocol
from neighbours.smartolt_world import make_centro, make_lit_onu

PAGE = (ROOT / "docs/metrics.md").read_text()
ROW = re.compile(r"^\| `(facho_\w+)` \| (.*?) ?\| (.+) \|$", re.MULTILINE)
# Bounded by what operators configure, or by the code.
LABELS = {
    *("version", "state", "poller", "at_least_seconds", "reason", "task_type", "olt", "severity", "engine"),
    *("port", "kind", "direction", "scope", "cause"),
    # Of single ONUs, whose number has a bound.
    *("onu", "serial"),
}
OTHER_UNITS = re.compile(r"milli|_ms\b|percent|minutes|_hours")


@pytest.fixture
def families(db: None) -> list[Metric]:
    """Every family, each with at least one sample: those of all, then those of single ONUs."""
    make_leader()
    make_pollers(1)
    make_world()
    OnuReading.objects.update(tx_power_cdbm=230, temperature_tenths=465)
    of_onus = b"".join(write_prometheus(known_onus(), most=10))
    return [*scrape().families, *Scraped(of_onus.decode()).families]


def name_of(family: Metric) -> str:
    """Return the name as it stands in the text; the parser takes a counter's ending off."""
    return f"{family.name}_total" if family.type == "counter" else family.name


def test_every_series_stands_on_the_page_with_its_labels_and_meaning(families: list[Metric]) -> None:
    reported = [(name, tuple(re.findall(r"\w+", labels)), meaning) for name, labels, meaning in ROW.findall(PAGE)]

    answered = [(name_of(family), tuple(sorted(family.samples[0].labels)), family.documentation) for family in families]

    assert [(name, tuple(sorted(labels)), meaning) for name, labels, meaning in reported] == answered


def test_names_labels_and_types_are_those_that_prometheus_asks_for(families: list[Metric]) -> None:
    names = [name_of(family) for family in families]

    assert [name for name in names if not name.startswith("facho_") or OTHER_UNITS.search(name)] == []
    assert {family.type for family in families} == {"gauge", "counter"}
    assert {label for family in families for sample in family.samples for label in sample.labels} <= LABELS


def test_every_name_in_a_question_of_the_page_exists(families: list[Metric]) -> None:
    names = {name_of(family) for family in families}

    assert set(re.findall(r"\bfacho_\w+", PAGE)) == names | {MEASUREMENT, f"{MEASUREMENT}_metrics"}


@pytest.mark.django_db
def test_the_lines_for_telegraf_are_those_that_the_page_shows() -> None:
    make_lit_onu(make_centro())

    [shown] = blocks(ROOT / "docs/metrics.md", "text")

    assert b"".join(write_influx(known_onus(), most=10)).decode() == shown
    assert len(read_line_protocol(shown)) == 1 + Onu.objects.count()


@pytest.mark.parametrize("language", ["yaml", "toml"])
def test_every_configuration_of_the_page_can_be_read_and_asks_where_there_are_metrics(language: str) -> None:
    read = {"yaml": yaml.safe_load, "toml": tomllib.loads}[language]
    asked = [read(block) for block in blocks(ROOT / "docs/metrics.md", language)]

    jobs = [job for each in asked for job in each.get("scrape_configs", [])]
    urls = [url for each in asked for part in each.get("inputs", {}).get("http", []) for url in part["urls"]]
    paths = [*(job.get("metrics_path", "/metrics") for job in jobs), *(urlsplit(url).path for url in urls)]
    assert paths
    assert [path for path in paths if resolve(path).url_name not in ("metrics", "onu-metrics")] == []


@pytest.mark.parametrize("text", blocks(ROOT / "docs/metrics.md", "yaml"))
def test_prometheus_itself_takes_every_configuration_of_the_page(text: str, tmp_path: Path) -> None:
    (tmp_path / "facho.token").write_text("facho_one")
    (tmp_path / "prometheus.yml").write_text(text.replace("/etc/prometheus/", f"{tmp_path}/"))

    done = subprocess.run(
        ["promtool", "check", "config", tmp_path / "prometheus.yml"], capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stderr) == (0, "")
