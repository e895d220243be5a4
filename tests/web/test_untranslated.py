"""No reader of Spanish or Portuguese meets an English text: texts are marked, and pages show their translation.

That every marked text has a translation is the catalogue's own test.
"""

import ast
import re
from collections.abc import Iterator
from datetime import date
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from django.template.base import Lexer, TokenType
from django.test import Client
from django.utils import translation
from django.utils.formats import date_format
from django.utils.translation import gettext
from tools.messages import load_catalogue

from accounts.two_groups import make_world
from api.rows import make_user
from facho.accounts.roles import Role
from facho.alerts.models import AlertRule
from facho.alerts.store import offer_default_rules
from web.every_address import all_addresses, body_of

SOURCE = Path(__file__).resolve().parents[2] / "src/facho"
TEMPLATES = sorted(SOURCE.rglob("*.html"))
# The same in every language: names, units, and what is typed at a terminal.
SAME_EVERYWHERE = {
    *("Facho", "OLT", "ONU", "PON", "SNMP", "API", "CSV", "PDF", "LOS", "OID", "IP", "UTC", "SHA", "AES", "MD", "DES"),
    *(
        "dBm",
        "dB",
        "ms",
        "km",
        "mA",
        "Mbit",
        "kB",
        "min",
        "facho",
        "run",
        "token",
        "Bearer",
        "Authorization",
        "v",
        "sysObjectID",
    ),
}
READ_ALOUD = {"alt", "title", "placeholder", "aria-label", "data-label", "data-tip"}
UNREAD = {"script", "style", "code", "svg:style"}
# Where Django or we show a text to people: these arguments, and the first one of these calls.
SHOWN_ARGUMENTS = {"help_text", "verbose_name", "verbose_name_plural", "label", "empty_label", "description", "help"}
SHOWING_CALLS = {"ValidationError", "OperatorError", "Http404", "success", "error", "warning", "info"}
# Exceptions below the Django rooms, the API's own description, and what a simulated OLT says stay English.
NOT_FOR_OPERATORS = {"migrations", "polling", "simulator", "api"}
WORD = re.compile(r"[^\W\d_]{2,}")


class TextsOfPage(HTMLParser):
    """What a person reads of a page or hears of it."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self._unread = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._unread += tag in UNREAD
        self.texts += [value for name, value in attrs if name in READ_ALOUD and value]

    def handle_endtag(self, tag: str) -> None:
        self._unread -= tag in UNREAD

    def handle_data(self, data: str) -> None:
        if not self._unread:
            self.texts.append(" ".join(data.split()))


def texts_of(page: str) -> list[str]:
    parser = TextsOfPage()
    parser.feed(page)
    return parser.texts


def plain_text(template: str) -> str:
    """Leave of a template what is written there for everybody, whatever their language."""
    kept, until = "", ""
    for token in Lexer(template).tokenize():
        name = token.contents.partition(" ")[0]
        if token.token_type == TokenType.BLOCK and name in ("blocktranslate", "comment"):
            until = f"end{name}"
        elif token.contents == "block bodyclass":
            until = "endblock"
        elif token.token_type == TokenType.BLOCK and name == until:
            until = ""
        elif token.token_type == TokenType.TEXT and not until:
            kept += token.contents
    return kept


def words_for_everybody(text: str) -> list[str]:
    return [word for word in WORD.findall(text) if word not in SAME_EVERYWHERE]


def unmarked_in_template(path: Path) -> list[str]:
    return [text for text in texts_of(plain_text(path.read_text())) if words_for_everybody(text)]


def shown_constants(tree: ast.AST) -> Iterator[ast.expr]:
    """Give what is shown to people as it is written."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        name = ast.unparse(node.func)
        is_log = "logger" in name or "logging" in name
        if name.split(".")[-1] in SHOWING_CALLS and not is_log:
            yield from node.args
        yield from (argument.value for argument in node.keywords if argument.arg in SHOWN_ARGUMENTS)


def unmarked_in_module(path: Path) -> list[str]:
    found = shown_constants(ast.parse(path.read_text()))
    return [text for text in map(written, found) if " " in text.strip() and words_for_everybody(text)]


def written(value: ast.expr) -> str:
    """Return the letters that an expression has of its own."""
    parts = value.values if isinstance(value, ast.JoinedStr) else [value]
    return "".join(str(part.value) for part in parts if isinstance(part, ast.Constant))


def test_what_is_not_marked_is_seen() -> None:
    assert plain_text('<b>{% translate "Hi" %} you {{ name }}</b>') == "<b> you </b>"
    assert texts_of('<p aria-label="Say">it<script>no</script></p>') == ["Say", "it"]


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_a_template_says_nothing_past_the_catalogue(path: Path) -> None:
    assert unmarked_in_template(path) == []


def test_no_module_shows_people_a_text_past_the_catalogue() -> None:
    modules = [path for path in SOURCE.rglob("*.py") if not NOT_FOR_OPERATORS & set(path.parts)]

    found = {str(path.relative_to(SOURCE)): unmarked_in_module(path) for path in modules}

    assert {path: texts for path, texts in found.items() if texts} == {}


def test_no_text_of_ours_takes_the_place_of_a_month() -> None:
    """A word that Django knows as well would change its dates."""
    with translation.override("es"):
        months = [date_format(date(2026, month, 5)) for month in range(1, 13)]

    assert [month.split()[2] for month in months] == [
        *("enero", "febrero", "marzo", "abril", "mayo", "junio"),
        *("julio", "agosto", "septiembre", "octubre", "noviembre", "diciembre"),
    ]


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("language", "locale"), [("es", "es"), pytest.param("pt-br", "pt_BR", marks=pytest.mark.thorough)]
)
def test_no_page_shows_a_text_that_has_a_translation(language: str, locale: str) -> None:
    """A text that is translated too early, before the reader is known, shows here."""
    texts = [str(message.id) for message in load_catalogue(locale) if message.id and " " in message.id]
    with translation.override(language):
        english = {text for text in texts if gettext(text) != text}
    offer_default_rules()
    # Rules were named in the language of the installation, and people may call them anything.
    english -= set(AlertRule.objects.values_list("name", flat=True))
    client = Client(headers={"accept-language": language})
    client.force_login(make_user(Role.ADMIN, "ana"))
    pages = 0

    found = set()
    for address in all_addresses(make_world()):
        answer: Any = client.get(address)
        if answer.headers.get("Content-Type", "").startswith("text/html"):
            pages += 1
            found |= {(address, text) for text in texts_of(body_of(answer)) if text in english}

    assert found == set()
    assert pages > 120
