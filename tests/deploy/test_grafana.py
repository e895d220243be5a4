"""The dashboards for Grafana ask for series that exist, and are what the tool writes."""

import json
import re
from itertools import combinations
from typing import Any

import pytest
from tools import grafana

PAGE = (grafana.FOLDER.parents[1] / "docs/metrics.md").read_text()


@pytest.fixture(params=grafana.LANGUAGES)
def dashboard(request: pytest.FixtureRequest) -> dict[str, Any]:
    read: dict[str, Any] = json.loads((grafana.FOLDER / f"facho-{request.param}.json").read_text())
    return read


@pytest.mark.parametrize("language", grafana.LANGUAGES)
def test_the_file_is_what_the_tool_writes(language: str) -> None:
    assert (grafana.FOLDER / f"facho-{language}.json").read_text() == grafana.text(language)


def test_every_series_that_is_asked_for_stands_on_the_page(dashboard: dict[str, Any]) -> None:
    asked = {name for panel in dashboard["panels"] for t in panel["targets"] for name in names(t["expr"])}

    assert asked <= names(PAGE)
    assert len(asked) >= 15


def test_a_second_target_doubles_no_figure(dashboard: dict[str, Any]) -> None:
    asked = [t["expr"] for panel in dashboard["panels"] for t in panel["targets"]]

    assert all(ask.count("max without (instance) (facho_") == ask.count("facho_") for ask in asked)


def test_panels_lie_beside_each_other(dashboard: dict[str, Any]) -> None:
    places = [panel["gridPos"] for panel in dashboard["panels"]]

    assert all(place["x"] + place["w"] <= grafana.WIDTH for place in places)
    assert not any(overlap(one, other) for one, other in combinations(places, 2))


def test_nothing_is_tied_to_one_installation(dashboard: dict[str, Any]) -> None:
    sources = {target["datasource"]["uid"] for panel in dashboard["panels"] for target in panel["targets"]}

    assert sources == {"${source}"}
    assert "://" not in json.dumps(dashboard)


def names(text: str) -> set[str]:
    return set(re.findall(r"\bfacho_\w+", text))


def overlap(one: dict[str, int], other: dict[str, int]) -> bool:
    apart_x = one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"]
    apart_y = one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"]
    return not (apart_x or apart_y)
