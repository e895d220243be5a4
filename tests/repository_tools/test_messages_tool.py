"""Texts are found in Python and in templates, however these are indented."""

from pathlib import Path

import pytest
from babel.messages.catalog import Catalog
from tools import messages

MODULE = """
label = _("light")
lazy = gettext_lazy("power")
many = ngettext("one", "many", n)
skipped = other("no text")
"""
TEMPLATE = """
<ul>
      {% load i18n %}
    <li>{% translate "A short text" %}</li>
  <li title="{% translate 'unknown' context 'ONU' %}">it's 5 % "quoted" and {unbalanced(</li>
        {% blocktranslate count number=total trimmed %}
            {{ number }} OLT
        {% plural %}
            {{ number }} OLTs
        {% endblocktranslate %}
</ul>
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A source tree with one module and one template."""
    folder = tmp_path / "src/facho/onus/templates"
    folder.mkdir(parents=True)
    (folder / "onus.html").write_text(TEMPLATE)
    (folder.parent / "words.py").write_text(MODULE)
    return tmp_path


def test_python_sources_are_read(root: Path) -> None:
    found = {message.id for message in messages.collect_texts(root)}

    assert {"light", "power", ("one", "many")} <= found
    assert "no text" not in found


def test_templates_are_read_with_context_and_plural(root: Path) -> None:
    found = {(message.context, message.id) for message in messages.collect_texts(root)}

    assert (None, "A short text") in found
    assert ("ONU", "unknown") in found
    assert (None, ("%(number)s OLT", "%(number)s OLTs")) in found


def test_translations_that_still_fit_survive(root: Path) -> None:
    catalogue = Catalog(locale="es")
    catalogue.add("light", "luz")
    catalogue.add("gone", "ido")

    catalogue.update(messages.collect_texts(root), no_fuzzy_matching=True)

    written = messages.render(catalogue).decode()
    assert 'msgid "light"\nmsgstr "luz"' in written
    assert "ido" not in written


def test_a_text_without_translation_is_named(root: Path) -> None:
    catalogue = messages.collect_texts(root)

    assert "light" in list(messages.untranslated(catalogue))


def test_the_catalogue_tells_nothing_of_people_or_days(root: Path) -> None:
    catalogue = Catalog(locale="es")
    catalogue.update(messages.collect_texts(root))

    written = messages.render(catalogue).decode()

    assert "Date" not in written
    assert "@" not in written
