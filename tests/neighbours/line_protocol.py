"""A strict reader of InfluxDB's line protocol: what it would refuse or read in two ways fails."""

import re
from dataclasses import dataclass

_TAG = re.compile(r"(?P<name>[a-z_]+)=(?P<value>(?:[^\\,= \x00-\x1f\x7f]|\\[,= ])+)")
_FIELD = re.compile(r"(?P<name>[a-z_]+)=(?P<value>-?[0-9]+i|-?[0-9]+\.[0-9]+)")


@dataclass(frozen=True)
class Point:
    """One line: a measurement with tags and fields, and no time."""

    measurement: str
    tags: dict[str, str]
    fields: dict[str, float]


def read_line_protocol(text: str) -> list[Point]:
    assert text.endswith("\n")
    return [_read_line(line) for line in text[:-1].split("\n")]


def _read_line(line: str) -> Point:
    head, fields, *rest = re.split(r"(?<!\\) ", line)
    assert rest == [], f"too many parts: {line!r}"
    measurement, *tags = re.split(r"(?<!\\),", head)
    assert re.fullmatch(r"[a-z_]+", measurement), line
    return Point(measurement, dict(_pair(_TAG, tag) for tag in tags), dict(map(_number, fields.split(","))))


def _pair(form: re.Pattern[str], text: str) -> tuple[str, str]:
    found = form.fullmatch(text)
    assert found, f"no pair: {text!r}"
    return found["name"], re.sub(r"\\([,= ])", r"\1", found["value"])


def _number(text: str) -> tuple[str, float]:
    name, value = _pair(_FIELD, text)
    return name, float(value.removesuffix("i"))
