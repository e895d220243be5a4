"""The two forms of a line of the log: for people, and as JSON for programs."""

import json
import logging
import re
import sys

from facho.core.security import JsonFormatter, LineFormatter

OFFSET = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}[+-]\d\d:\d\d")


def record(text: str, *values: object, error: bool = False) -> logging.LogRecord:
    return logging.LogRecord("facho.x", logging.INFO, __file__, 1, text, values, sys.exc_info() if error else None)


def test_the_time_of_a_line_has_its_offset() -> None:
    line = LineFormatter("{asctime} {levelname} {name}: {message}", style="{").format(record("node.started olt=%s", 7))

    moment, rest = line.split(" ", 1)
    assert OFFSET.fullmatch(moment)
    assert rest == "INFO facho.x: node.started olt=7"


def test_a_json_line_has_the_event_and_its_values_by_name() -> None:
    line = json.loads(
        JsonFormatter().format(record("node.ended olt=%s took=%.1f why=%s", 7, 1.25, "no answer\nat all"))
    )

    assert OFFSET.fullmatch(line.pop("time"))
    assert line == {
        "level": "INFO", "logger": "facho.x", "event": "node.ended", "olt": 7, "took": 1.25, "why": "no answer\nat all",
        "message": "node.ended olt=7 took=1.2 why=no answer\nat all",
    }  # fmt: skip


def test_a_json_line_stays_one_line_and_a_value_replaces_no_field_of_ours() -> None:
    text = JsonFormatter().format(record("x.y level=%s {\n", "HIGH"))

    assert text.count("\n") == 0
    assert json.loads(text)["level"] == "INFO"


def test_a_json_line_keeps_a_traceback() -> None:
    try:
        int("why")
    except ValueError:
        line = json.loads(JsonFormatter().format(record("task.failed", error=True)))

    assert line["error"].endswith("ValueError: invalid literal for int() with base 10: 'why'")
