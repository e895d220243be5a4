"""A real Chromium, and pages that remember everything it complained about."""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, Request, expect, sync_playwright

from browser.running_demo import PATIENCE_MS, Demo, running_demo

ARTIFACTS = Path(__file__).resolve().parents[2] / "artifacts"
CHROMIUM = "/usr/bin/chromium"
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
DESKTOP, PHONE = 1280, 360
# A push sees a page in Spanish on a phone and in English on a desktop; the rest sees it in every language on both.
EVERY_WINDOW = pytest.mark.parametrize(
    ("language", "width"),
    [
        ("es", PHONE),
        ("en", DESKTOP),
        *(
            pytest.param(language, width, marks=pytest.mark.thorough)
            for language, width in (("pt-br", PHONE), ("en", PHONE), ("es", DESKTOP), ("pt-br", DESKTOP))
        ),
    ],
)


CUT_TEXTS = """() => {
    const cut = [...document.querySelectorAll("body *")].filter(element => {
        const { overflowX, overflowY } = getComputedStyle(element);
        const isCut = overflowX === "hidden" && element.scrollWidth > element.clientWidth + 1
            || overflowY === "hidden" && element.scrollHeight > element.clientHeight + 1;
        return isCut && !element.closest(".hidden, .visually-hidden") && element.textContent.trim();
    });
    const pen = document.createElement("canvas").getContext("2d");
    const cutHints = [...document.querySelectorAll("input[placeholder]")].filter(input => {
        const { font, paddingLeft, paddingRight } = getComputedStyle(input);
        pen.font = font;
        const room = input.clientWidth - parseFloat(paddingLeft) - parseFloat(paddingRight);
        return input.checkVisibility() && pen.measureText(input.placeholder).width > room + 1;
    });
    const texts = [...cut.map(element => element.textContent), ...cutHints.map(input => input.placeholder)];
    return texts.map(text => text.trim().slice(0, 100));
}"""


@dataclass
class Visit:
    """A page and what was seen of it: complaints on the console, and addresses that it asked for."""

    page: Page
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def watch(self) -> None:
        """Listen from the first request on."""
        self.page.on("console", lambda message: self._note(message.type, message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("dialog", lambda dialog: self.complaints.append(f"dialog: {dialog.message}"))
        self.page.on("request", self._note_request)

    def log_in(self, url: str, user: str, password: str) -> None:
        """Log in through the form and land on the overview."""
        self.page.goto(f"{url}/login/")
        self.page.fill("[name=username]", user)
        self.page.fill("[name=password]", password)
        self.page.click("main button[type=submit]")
        self.page.wait_for_selector("#live")

    def keep(self, name: str) -> None:
        """Keep a picture of the whole page."""
        ARTIFACTS.mkdir(exist_ok=True)
        self.page.screenshot(path=ARTIFACTS / f"{name}.png", full_page=True)

    def width(self) -> int:
        """Measure what the page needs in width, once it is there."""
        self.page.wait_for_load_state()
        return int(self.page.evaluate("document.documentElement.scrollWidth"))

    def cut_texts(self) -> list[str]:
        """Name the texts of which a part is hidden for lack of room, apart from those for screen readers alone."""
        return list(self.page.evaluate(CUT_TEXTS))

    def faults(self) -> list[str]:
        """Name texts that are cut off, and what keeps somebody out."""
        # Forms of the admin hide what sticks out of a row by a pixel.
        cut = [] if "/admin/" in self.page.url else self.cut_texts()
        return [*(f"cut off: {text}" for text in cut), *self.barriers()]

    def barriers(self) -> list[str]:
        """Name what would keep somebody out who sees, hears or points otherwise, as axe judges it."""
        found = Axe().run(self.page).response["violations"]
        grave = [each for each in found if each["impact"] in ("serious", "critical")]
        return [f"{each['id']}: {node['html'][:200]}" for each in grave for node in each["nodes"][:3]]

    def strangers(self, url: str) -> list[str]:
        """Name the addresses beyond the product's own that the page asked for."""
        return [request for request in self.requests if not request.startswith((url, "data:"))]

    def _note(self, kind: str, text: str) -> None:
        if kind in ("error", "warning"):
            self.complaints.append(text)

    def _note_request(self, request: Request) -> None:
        self.requests.append(request.url)


Visitor = Callable[..., Visit]


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """One Chromium for all tests of the folder."""
    # Playwright keeps an event loop in this thread, which Django takes for a reason to refuse the database.
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield chromium
        chromium.close()
    del os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"]


@pytest.fixture(scope="package")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    """One demo for all tests of the folder."""
    with running_demo(tmp_path_factory.mktemp("demo")) as demo:
        yield demo


@pytest.fixture(scope="package")
def cut_demo(demo: Demo, browser: Browser) -> Demo:
    """The demo once a fibre of it is cut."""
    context = browser.new_context()
    visit = Visit(context.new_page())
    visit.log_in(demo.url, demo.user, demo.password)
    expect(visit.page.locator(".trouble")).to_be_visible(timeout=PATIENCE_MS)
    context.close()
    return demo


@pytest.fixture
def visitor(browser: Browser) -> Iterator[Visitor]:
    """Open windows of a language, a width and a colour scheme; all are closed at the end of the test."""
    contexts = []

    def open_window(*, language: str = "en", width: int = DESKTOP, dark: bool = False) -> Visit:
        visit = open_visit(browser, language=language, width=width, dark=dark)
        contexts.append(visit.page.context)
        return visit

    yield open_window
    for context in contexts:
        context.close()


def open_visit(browser: Browser, *, language: str, width: int, dark: bool) -> Visit:
    """Open a window of its own, as if of another person."""
    context = browser.new_context(
        viewport={"width": width, "height": 900}, locale=language, color_scheme="dark" if dark else "light"
    )
    visit = Visit(context.new_page())
    visit.watch()
    return visit
