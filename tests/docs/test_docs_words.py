"""The glossary has every term in both languages, and the decisions have one form."""

import re
from pathlib import Path

import pytest
from babel.messages.pofile import read_po
from docs_pages import ROOT

GLOSSARY = ROOT / "docs/glossary.md"
DECISIONS = sorted((ROOT / "docs/decisions").glob("[0-9]*.md"))
TERMS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in GLOSSARY.read_text().splitlines()
    if line.startswith("| ") and not line.startswith("| Español")
]
# What the specification, the pages and the operators cannot do without.
EXPECTED = (
    "OLT, ONU, PON port, serial, optical power, receive power, PON outage, vendor definition, job, discovery, probe, "
    "collector, workflow, node, master, chain, composite node, slot, delayed, queue, suspension, scheduler, poller, "
    "execution, attempt, claim, fencing token, lease, engine, coordinator, quota, violation, plan, simulator"
)


def test_every_term_has_both_languages_a_meaning_and_a_warning() -> None:
    assert [row for row in TERMS if len(row) != 4 or not all(row)] == []


def test_no_english_term_means_two_things() -> None:
    english = [word for row in TERMS for word in re.split(r", | / ", row[1])]

    assert sorted({word for word in english if english.count(word) > 1}) == ["slot"]


def test_the_words_of_the_domain_are_there() -> None:
    english = {word for row in TERMS for word in re.split(r", | / ", row[1])}

    assert set(EXPECTED.split(", ")) <= english


def test_the_spanish_pages_use_the_words_of_the_glossary() -> None:
    catalogue = ROOT / "src/facho/core/locale/es/LC_MESSAGES/django.po"
    with catalogue.open("rb") as file:
        translated = {str(message.id).lower(): str(message.string).lower() for message in read_po(file)}

    strays = [
        f"{word}: {translated[word.lower()]}"
        for spanish, english, *_rest in TERMS
        for word in re.split(r", | / ", english)
        # Without the last letter: a word on a page has a gender of its own.
        if translated.get(word.lower(), "")[:-1] not in spanish.lower()
    ]

    assert strays == []


def test_decisions_are_numbered_and_listed() -> None:
    listed = re.findall(r"^\d+\. \[(.+)\]\((.+)\)$", (ROOT / "docs/decisions/README.md").read_text(), re.MULTILINE)
    titles = [page.read_text().splitlines()[0] for page in DECISIONS]

    assert [name for _title, name in listed] == [page.name for page in DECISIONS]
    assert titles == [f"# {int(name[:4])}. {title}" for title, name in listed]


@pytest.mark.parametrize("page", DECISIONS, ids=lambda page: page.name)
def test_a_decision_says_context_decision_and_consequences(page: Path) -> None:
    text = page.read_text()

    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == ["Context", "Decision", "Consequences"]
    assert len(text.splitlines()) <= 35


def test_the_changelog_begins_with_what_is_not_released() -> None:
    headings = re.findall(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)

    assert headings[0] == "Unreleased"
