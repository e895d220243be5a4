"""The demo as a newcomer sees it: one command, a browser, and ONUs that appear and change by themselves."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import expect

from browser.conftest import DESKTOP, PHONE, Visitor

pytestmark = [pytest.mark.browser, pytest.mark.slow]

# Polling, storing and refreshing take seconds; a busy machine takes longer.
PATIENCE_SECONDS = 90
OLTS, ONUS = 2, 32


@dataclass(frozen=True, slots=True)
class Demo:
    """Where a running demo is, and how to get in."""

    url: str
    user: str
    password: str


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    """Start the demo, and end it as Ctrl-C does."""
    environ = {name: value for name, value in os.environ.items() if name != "DATABASE_URL"}
    environ["FACHO_DATA_DIR"] = str(tmp_path_factory.mktemp("demo"))
    command = [str(Path(sys.executable).with_name("facho")), "demo", "--bind", "127.0.0.1:0"]
    command += ["--olts", str(OLTS), "--onus", str(ONUS)]
    with subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, text=True) as process:
        try:
            lines = _read_until(process, "login")
            user, password = lines["login"].split()
            yield Demo(lines["url"], user, password)
        finally:
            process.send_signal(signal.SIGINT)
            assert process.wait(PATIENCE_SECONDS) == 0


def _read_until(process: "subprocess.Popen[str]", last: str) -> dict[str, str]:
    assert process.stdout is not None
    lines: dict[str, str] = {}
    while last not in lines:
        line = process.stdout.readline()
        assert line, "the demo ended before it was ready"
        name, _, value = line.partition(": ")
        lines[name] = value.strip()
    return lines


def test_onus_appear_and_change_without_the_page_being_loaded_again(demo: Demo, visitor: Visitor) -> None:
    visit = visitor()
    visit.log_in(demo.url, demo.user, demo.password)
    visit.page.evaluate("window.sameDocument = true")

    expect(visit.page.locator(".onus tbody tr").first).to_be_visible(timeout=PATIENCE_SECONDS * 1000)
    expect(visit.page.locator(".numbers")).to_contain_text(f"/{OLTS * ONUS}", timeout=PATIENCE_SECONDS * 1000)
    expect(visit.page.locator("tr.up")).to_have_count(OLTS, timeout=PATIENCE_SECONDS * 1000)
    seen = visit.page.locator("#live").inner_text()
    visit.page.wait_for_function(
        "seen => document.querySelector('#live').innerText !== seen", arg=seen, timeout=PATIENCE_SECONDS * 1000
    )

    assert visit.page.evaluate("window.sameDocument") is True
    assert visit.complaints == []
    assert [request for request in visit.requests if not request.startswith((demo.url, "data:"))] == []


@pytest.mark.parametrize("width", [DESKTOP, PHONE])
@pytest.mark.parametrize("language", ["en", "es"])
def test_the_pages_of_the_demo_are_fit_to_be_shown(demo: Demo, visitor: Visitor, language: str, width: int) -> None:
    visit = visitor(language=language, width=width, dark=width == PHONE)
    visit.log_in(demo.url, demo.user, demo.password)
    expect(visit.page.locator(".onus tbody tr").first).to_be_visible(timeout=PATIENCE_SECONDS * 1000)
    visit.keep(f"demo-overview-{language}-{width}")
    assert visit.width() == width

    visit.page.click("tr.up th a >> nth=0")
    expect(visit.page.locator(".heat a").first).to_be_visible(timeout=PATIENCE_SECONDS * 1000)
    visit.keep(f"demo-olt-{language}-{width}")
    assert visit.width() == width

    visit.page.goto(f"{demo.url}/onus/")
    visit.keep(f"demo-onus-{language}-{width}")

    assert visit.width() == width
    assert visit.complaints == []
