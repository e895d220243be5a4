"""The glossary has every term in its languages, the pages use them, and the decisions have one form."""

import re
from pathlib import Path

import pytest
from babel.messages.pofile import read_po
from docs_pages import ROOT, rows

GLOSSARY = ROOT / "docs/glossary.md"
DECISIONS = sorted((ROOT / "docs/decisions").glob("[0-9]*.md"))
TERMS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in GLOSSARY.read_text().partition("\n## Portuguese\n")[0].splitlines()
    if line.startswith("| ") and not line.startswith("| Español")
]
PORTUGUESE = {cells[1]: cells[0] for cells in rows(GLOSSARY, heading="## Portuguese")}
# What the pages of Brazilian providers cannot do without.
EXPECTED_PORTUGUESE = {"OLT", "ONU", "box", "outage", "fibre cut", "loss of signal", "dying gasp"}
# As another Portuguese, or a translation word by word, would have it.
NOT_PORTUGUESE = re.compile(
    r"\b(?:luz|corte|cortad[oa]s?|ONT|utilizador|ficheiro|ecrã|gasp moribundo)\b", re.IGNORECASE
)
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


def translations(locale: str) -> dict[str, str]:
    """Return the texts of a catalogue in small letters; of several forms all."""
    with (ROOT / f"src/facho/core/locale/{locale}/LC_MESSAGES/django.po").open("rb") as file:
        return {str(message.id).lower(): str(message.string).lower() for message in read_po(file)}


def test_the_spanish_pages_use_the_words_of_the_glossary() -> None:
    translated = translations("es")

    strays = [
        f"{word}: {translated[word.lower()]}"
        for spanish, english, *_rest in TERMS
        for word in re.split(r", | / ", english)
        # Without the last letter: a word on a page has a gender of its own.
        if translated.get(word.lower(), "")[:-1] not in spanish.lower()
    ]

    assert strays == []


def test_the_portuguese_pages_use_the_words_of_the_glossary() -> None:
    translated = translations("pt_BR")

    words = {english: translated.get(english.lower()) for english in PORTUGUESE}

    assert set(PORTUGUESE) >= EXPECTED_PORTUGUESE
    assert {english for english, word in words.items() if word is None} == set()
    assert {english: word for english, word in words.items() if word not in PORTUGUESE[english].lower()} == {}


def test_the_portuguese_pages_use_no_word_of_elsewhere() -> None:
    readme = (ROOT / "README.pt-BR.md").read_text()

    assert [text for text in [*translations("pt_BR").values(), readme] if NOT_PORTUGUESE.search(text)] == []


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
