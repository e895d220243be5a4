"""Writes the Grafana dashboards of deploy/grafana, one for each language, from one list of panels."""

import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "deploy" / "grafana"
LANGUAGES = ("es", "en", "pt-br")
WIDTH = 24
GREEN, YELLOW, RED = "green", "yellow", "red"
SOURCE = {"type": "prometheus", "uid": "${source}"}
SOME_ARE_TOO_MANY = ((GREEN, None), (YELLOW, 1))
OF_OLTS = 'olt=~"$olt"'
SERIES = re.compile(r"facho_\w+(?:\{[^}]*\})?")

Texts = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Panel:
    """One panel: what it asks, how wide it is, and from which values on it is yellow or red."""

    title: Texts
    asks: dict[str, str]
    kind: str = "timeseries"
    width: int = 12
    height: int = 8
    unit: str = "short"
    steps: tuple[tuple[str, float | None], ...] = ((GREEN, None),)
    help: Texts = ("", "", "")
    limits: dict[str, float] = field(default_factory=dict)


def _number(title: Texts, asks: str, *, steps: tuple[tuple[str, float | None], ...] = ((GREEN, None),)) -> Panel:
    """A number of its own, six to a line."""
    return Panel(title, {"": asks}, kind="stat", width=4, height=4, steps=steps)


PANELS = (
    _number(
        ("Alguien planifica", "A scheduler leads", "Um agendador lidera"),
        "facho_leader_present",
        steps=((RED, None), (GREEN, 1)),
    ),
    _number(
        ("OLT sin respuesta", "Silent OLTs", "OLTs sem resposta"),
        "sum(facho_olt_up == bool 0)",
        steps=((GREEN, None), (RED, 1)),
    ),
    _number(("ONU en línea", "ONUs online", "ONUs online"), 'sum(facho_onus{state="online"})'),
    _number(
        ("ONU fuera de línea", "ONUs offline", "ONUs offline"),
        'sum(facho_onus{state="offline"})',
        steps=SOME_ARE_TOO_MANY,
    ),
    _number(
        ("Nodos suspendidos", "Suspended nodes", "Nós suspensos"),
        'facho_nodes{state="suspended"}',
        steps=SOME_ARE_TOO_MANY,
    ),
    _number(
        ("Incumplimientos en 24 h", "Violations in 24 h", "Violações em 24 h"),
        "sum(facho_quota_violations_last_day)",
        steps=SOME_ARE_TOO_MANY,
    ),
    Panel(
        ("ONU por estado", "ONUs by state", "ONUs por estado"),
        {"{{state}}": f"sum by (state) (facho_onus{{{OF_OLTS}}})"},
    ),
    Panel(
        ("Ocupación de los pollers", "Busy pollers", "Ocupação dos pollers"),
        {"": "avg(facho_poller_busy_ratio)"},
        unit="percentunit",
        steps=((GREEN, None), (RED, 0.75)),
        limits={"min": 0, "max": 1},
        help=(
            "Por encima del 75 % faltan pollers.",
            "Above 75 % more pollers are needed.",
            "Acima de 75 % faltam pollers.",
        ),
    ),
    Panel(
        ("Cola: por qué se espera", "Queue: what is waited for", "Fila: por que se espera"),
        {"{{reason}}": "facho_queue_waiting_nodes"},
    ),
    Panel(
        ("Retraso", "Lateness", "Atraso"),
        {"queue": "facho_queue_longest_wait_seconds", "scheduler": "facho_scheduler_lag_seconds"},
        unit="s",
    ),
    Panel(
        ("Ejecuciones de la última hora", "Runs of the last hour", "Execuções da última hora"),
        {"{{state}}": "sum by (state) (facho_executions_last_hour)"},
    ),
    Panel(
        ("Duración media de una ejecución", "Mean time of a run", "Duração média de uma execução"),
        {
            "{{task_type}}": "sum by (task_type) (facho_execution_duration_last_hour_seconds)"
            " / sum by (task_type) (facho_executions_last_hour)"
        },
        unit="s",
    ),
    Panel(
        ("Ejecuciones con éxito por OLT", "Successful runs by OLT", "Execuções com sucesso por OLT"),
        {"{{olt}}": f"facho_olt_success_ratio_last_hour{{{OF_OLTS}}}"},
        unit="percentunit",
        steps=((RED, None), (GREEN, 0.8)),
        limits={"min": 0, "max": 1},
    ),
    Panel(
        ("Paquetes repetidos por OLT", "Packets sent again by OLT", "Pacotes repetidos por OLT"),
        {
            "{{olt}}": f"facho_olt_retransmissions_last_hour{{{OF_OLTS}}}"
            f" / clamp_min(facho_olt_packets_last_hour{{{OF_OLTS}}}, 1)"
        },
        unit="percentunit",
        limits={"min": 0},
    ),
    Panel(
        ("Ida y vuelta media por OLT", "Mean round trip by OLT", "Ida e volta média por OLT"),
        {
            "{{olt}}": f"facho_olt_round_trip_last_hour_seconds{{{OF_OLTS}}}"
            f" / (facho_olt_round_trips_last_hour{{{OF_OLTS}}} > 0)"
        },
        unit="s",
        limits={"min": 0},
    ),
    Panel(
        ("Ida y vuelta más larga por OLT", "Longest round trip by OLT", "Ida e volta mais longa por OLT"),
        {"{{olt}}": f"facho_olt_round_trip_max_last_hour_seconds{{{OF_OLTS}}}"},
        unit="s",
        limits={"min": 0},
    ),
    Panel(
        ("Cuota cumplida en esta hora", "Quota served in this hour", "Cota cumprida nesta hora"),
        {
            "{{task_type}}": f"sum by (task_type) (facho_quota_completed{{{OF_OLTS}}})"
            f" / sum by (task_type) (facho_quota_required{{{OF_OLTS}}} > 0)"
        },
        unit="percentunit",
        limits={"min": 0, "max": 1},
    ),
    Panel(
        ("Minutos desde la última respuesta", "Minutes since the last answer", "Minutos desde a última resposta"),
        {"{{olt}}": f"facho_olt_last_answer_age_seconds{{{OF_OLTS}}} / 60"},
        unit="m",
    ),
    Panel(
        ("Nodos suspendidos: desde hace", "Suspended nodes: for how long", "Nós suspensos: há quanto tempo"),
        {"{{olt}} {{task_type}} {{reason}}": f"time() - facho_node_suspended_timestamp_seconds{{{OF_OLTS}}}"},
        kind="bargauge",
        width=WIDTH,
        unit="s",
    ),
)


def once(expression: str) -> str:
    """Count each series once: every web process that is scraped gives the same ones, under its own `instance`."""
    return SERIES.sub(r"max without (instance) (\g<0>)", expression)


def dashboard(language: str) -> dict[str, Any]:
    chosen = LANGUAGES.index(language)
    return {
        "uid": f"facho-{language}",
        "title": "Facho",
        "tags": ["facho", "gpon"],
        "schemaVersion": 39,
        "timezone": "browser",
        "refresh": "1m",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {
            "list": [
                {"name": "source", "type": "datasource", "query": "prometheus", "label": "Prometheus"},
                {
                    "name": "olt",
                    "type": "query",
                    "label": "OLT",
                    "datasource": SOURCE,
                    "query": "label_values(facho_olt_up, olt)",
                    "multi": True,
                    "includeAll": True,
                    "allValue": ".*",
                    "refresh": 2,
                    "sort": 1,
                },
            ]
        },
        "panels": list(_panels(chosen)),
    }


def _panels(language: int) -> Iterator[dict[str, Any]]:
    x = y = 0
    for number, panel in enumerate(PANELS, start=1):
        if x + panel.width > WIDTH:
            x, y = 0, y + PANELS[number - 2].height
        yield _panel(number, panel, language) | {"gridPos": {"x": x, "y": y, "w": panel.width, "h": panel.height}}
        x += panel.width


def _panel(number: int, panel: Panel, language: int) -> dict[str, Any]:
    steps = [{"color": color, "value": value} for color, value in panel.steps]
    return {
        "id": number,
        "type": panel.kind,
        "title": panel.title[language],
        "description": panel.help[language],
        "datasource": SOURCE,
        "fieldConfig": {
            "defaults": {"unit": panel.unit, "thresholds": {"mode": "absolute", "steps": steps}, **panel.limits},
            "overrides": [],
        },
        "targets": [
            {
                "refId": chr(65 + place),
                "datasource": SOURCE,
                "expr": once(expression),
                "legendFormat": legend or "__auto",
            }
            for place, (legend, expression) in enumerate(panel.asks.items())
        ],
    }


def text(language: str) -> str:
    return json.dumps(dashboard(language), indent=2, ensure_ascii=False) + "\n"


def main() -> int:
    FOLDER.mkdir(exist_ok=True)
    for language in LANGUAGES:
        (FOLDER / f"facho-{language}.json").write_text(text(language))
    return 0


if __name__ == "__main__":
    sys.exit(main())
