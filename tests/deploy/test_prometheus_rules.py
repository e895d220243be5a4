"""The alert rules, judged by promtool: they load, fire when they should, and count two targets once."""

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from deploy_files import DEPLOY

RULES = DEPLOY / "prometheus/facho.rules.yml"
PAGE = (DEPLOY.parent / "docs/metrics.md").read_text()
# Of both web processes, which give the same answer.
TARGETS = ("a:8000", "b:8000")


def promtool(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["promtool", *arguments], capture_output=True, text=True, check=False)


def series(name: str, values: str, **labels: str) -> list[dict[str, str]]:
    written = "".join(f', {label}="{value}"' for label, value in labels.items())
    return [{"series": f'{name}{{job="facho", instance="{target}"{written}}}', "values": values} for target in TARGETS]


def test_the_rules_load() -> None:
    done = promtool("check", "rules", RULES)

    assert done.returncode == 0, done.stdout + done.stderr


def test_every_series_of_a_rule_stands_on_the_page() -> None:
    asked = set(re.findall(r"\bfacho_\w+", RULES.read_text()))

    assert asked <= set(re.findall(r"`(facho_\w+)`", PAGE))


@pytest.mark.parametrize(
    ("alert", "given", "after", "labels"),
    [
        ("FachoNotScraped", series("up", "0x60")[:1], "6m", {"instance": "a:8000"}),
        ("FachoAbsent", [], "6m", {}),
        ("FachoNothingLeads", series("facho_leader_present", "0x60"), "3m", {}),
        ("FachoOltSilent", series("facho_olt_up", "0x60", olt="centro"), "11m", {"olt": "centro"}),
        ("FachoSeveralVersions", series("facho_build_info", "1x60", version="1")[:1]
         + series("facho_build_info", "1x60", version="2")[1:], "15m", {}),
        ("FachoSaturated", series("facho_poller_busy_ratio", "0.9x60", poller="1")
         + series("facho_poller_busy_ratio", "0.7x60", poller="2"), "16m", {}),
        ("FachoNodesSuspended", series("facho_nodes", "1x60", state="suspended"), "31m", {"state": "suspended"}),
        ("FachoDataStale", series("facho_last_success_timestamp_seconds", "0x500", olt="centro", task_type="discovery"),
         "371m", {"olt": "centro", "task_type": "discovery"}),
        ("FachoOutage", series("facho_outages_open", "1x60", scope="pon", cause="fibre"), "6m",
         {"scope": "pon", "cause": "fibre"}),
        ("FachoWeakLight", series("facho_pon_rx_power_lowest_dbm", "-29x90", olt="centro", port="0/1/3"), "65m",
         {"olt": "centro", "port": "0/1/3"}),
    ],
)  # fmt: skip
def test_a_rule_fires_once_and_not_for_each_target(
    tmp_path: Path, alert: str, given: list[dict[str, str]], after: str, labels: dict[str, str]
) -> None:
    (rule,) = [each for each in yaml.safe_load(RULES.read_text())["groups"][0]["rules"] if each["alert"] == alert]
    job = {"job": "facho"} if given else {}
    expected = {"exp_labels": {**job, **rule["labels"], **labels}, "exp_annotations": filled(rule, labels)}
    world = {
        "interval": "1m",
        "input_series": given,
        "alert_rule_test": [
            {"eval_time": "1m", "alertname": alert, "exp_alerts": []},
            {"eval_time": after, "alertname": alert, "exp_alerts": [expected]},
        ],
    }
    file = tmp_path / "world.yml"
    file.write_text(yaml.safe_dump({"rule_files": [str(RULES)], "tests": [world]}))

    done = promtool("test", "rules", file)

    assert done.returncode == 0, done.stdout + done.stderr


def test_every_rule_is_fired() -> None:
    [mark] = test_a_rule_fires_once_and_not_for_each_target.pytestmark  # type: ignore[attr-defined]
    rules = {rule["alert"] for rule in yaml.safe_load(RULES.read_text())["groups"][0]["rules"]}

    assert {alert for alert, *_world in mark.args[1]} == rules


def filled(rule: dict[str, Any], labels: dict[str, str]) -> dict[str, str]:
    text = re.sub(r"{{ \$labels\.(\w+) }}", lambda match: labels[match[1]], rule["annotations"]["summary"])
    return {"summary": text.replace("{{ $value }}", "-29" if "dBm" in text else "1")}
