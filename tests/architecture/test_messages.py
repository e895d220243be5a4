"""Operators read Spanish or Portuguese: every text has its translations, and the catalogues hold nothing else."""

import re

import pytest
from babel.messages.catalog import Catalog, Message
from tools.messages import LOCALES, collect_texts, load_catalogue, render, untranslated

in_each_language = pytest.mark.parametrize("locale", LOCALES)
# Words of the one language that the other does not have, as a hurried translation leaves them.
SPANISH_ONLY = re.compile(r"[ñ¿¡]|\b(el|del|y|con|sin|una|hay|desde hace|nadie|ninguna|puerto|tarjeta)\b", re.I)


def keys(catalogue: Catalog) -> set[tuple[str | None, str]]:
    return {(message.context, str(message.id)) for message in catalogue if message.id}


def problems(message: Message, catalogue: Catalog) -> list[str]:
    return [f"{message.id}: {problem}" for problem in message.check(catalogue)]


@in_each_language
def test_a_catalogue_holds_exactly_the_texts_of_the_source(locale: str) -> None:
    collected, stored = keys(collect_texts()), keys(load_catalogue(locale))

    assert collected - stored == set(), "new texts: run `make messages` and translate them"
    assert stored - collected == set(), "texts that no source has any more: run `make messages`"


@in_each_language
def test_every_text_has_a_translation(locale: str) -> None:
    assert list(untranslated(load_catalogue(locale))) == []


@in_each_language
def test_every_translation_has_the_places_of_its_text(locale: str) -> None:
    catalogue = load_catalogue(locale)

    assert [problem for message in catalogue if message.id for problem in problems(message, catalogue)] == []


@in_each_language
def test_collecting_again_changes_nothing_but_the_texts(locale: str) -> None:
    catalogue = load_catalogue(locale)

    assert render(catalogue) == render(load_catalogue(locale))
    assert b"Date" not in render(catalogue)


def test_portuguese_is_not_spanish() -> None:
    texts = [str(message.string) for message in load_catalogue("pt_BR") if message.id]

    assert [text for text in texts if SPANISH_ONLY.search(text)] == []
