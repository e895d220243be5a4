"""Operators read Spanish: every text has its translation, and the catalogue holds nothing else."""

from babel.messages.catalog import Catalog, Message
from tools.messages import collect_texts, load_catalogue, render, untranslated


def keys(catalogue: Catalog) -> set[tuple[str | None, str]]:
    return {(message.context, str(message.id)) for message in catalogue if message.id}


def problems(message: Message, catalogue: Catalog) -> list[str]:
    return [f"{message.id}: {problem}" for problem in message.check(catalogue)]


def test_the_catalogue_holds_exactly_the_texts_of_the_source() -> None:
    collected, stored = keys(collect_texts()), keys(load_catalogue())

    assert collected - stored == set(), "new texts: run `make messages` and translate them"
    assert stored - collected == set(), "texts that no source has any more: run `make messages`"


def test_every_text_has_a_translation() -> None:
    assert list(untranslated(load_catalogue())) == []


def test_every_translation_has_the_places_of_its_text() -> None:
    catalogue = load_catalogue()

    assert [problem for message in catalogue if message.id for problem in problems(message, catalogue)] == []


def test_collecting_again_changes_nothing_but_the_texts() -> None:
    catalogue = load_catalogue()

    assert render(catalogue) == render(load_catalogue())
    assert b"Date" not in render(catalogue)
