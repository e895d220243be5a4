"""Collects the texts for operators into the catalogues of each language, without GNU gettext.

English needs no catalogue: its texts are the msgids. Translations that still fit are kept, others are dropped.
"""

import sys
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

import yaml
from babel.messages.catalog import Catalog
from babel.messages.extract import DEFAULT_KEYWORDS, extract
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po
from django.utils.translation.template import templatize

ROOT = Path(__file__).resolve().parents[1]
LOCALES = {"es": "Spanish", "pt_BR": "Brazilian Portuguese"}
KEYWORDS = {
    **DEFAULT_KEYWORDS,
    "gettext_lazy": None,
    "gettext_noop": None,
    "ngettext_lazy": (1, 2),
    "pgettext_lazy": ((1, "c"), 2),
    "npgettext_lazy": ((1, "c"), 2, 3),
}
TEMPLATES = {".html", ".txt"}
# Lines that would change with every run, or name people.
VOLATILE = tuple(
    f'"{name}'.encode()
    for name in ("POT-Creation-", "PO-Revision-", "Last-Translator", "Language-Team", "Generated-By", "Report-Msgid-")
)


def main() -> int:
    """Bring the catalogues up to date, compile them, and list what still has no translation."""
    found = collect_texts()
    for locale in LOCALES:
        catalogue = load_catalogue(locale)
        catalogue.update(found, no_fuzzy_matching=True, update_creation_date=False)
        path = path_of(locale)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(render(catalogue))
        with path.with_suffix(".mo").open("wb") as compiled:
            write_mo(compiled, catalogue)
        missing = list(untranslated(catalogue))
        print("\n".join(f"{locale}: no translation: {text}" for text in missing))
        print(f"{locale}: {len(catalogue)} texts, {len(missing)} without a translation")
    return 0


def path_of(locale: str) -> Path:
    return ROOT / f"src/facho/core/locale/{locale}/LC_MESSAGES/django.po"


def load_catalogue(locale: str) -> Catalog:
    path = path_of(locale)
    if not path.exists():
        return Catalog(locale=locale)
    with path.open("rb") as file:
        return read_po(file, locale=locale)


def collect_texts(root: Path = ROOT) -> Catalog:
    found = Catalog()
    for path in sorted((root / "src").rglob("*")):
        where = [(path.relative_to(root).as_posix(), 0)]
        for _line, text, _comments, context in extract("python", BytesIO(_python_of(path)), KEYWORDS):
            found.add(text, locations=where, context=context)
    return found


def untranslated(catalogue: Catalog) -> Iterator[str]:
    """Name the texts that would appear in English."""
    for message in catalogue:
        strings = message.string if isinstance(message.string, (list, tuple)) else [message.string]
        if message.id and (message.fuzzy or not all(strings)):
            yield str(message.id)


def render(catalogue: Catalog) -> bytes:
    language = LOCALES[str(catalogue.locale)]
    catalogue.header_comment = (
        f"# {language} texts of Facho. `make messages` collects them; translations are written here."
    )
    catalogue.project, catalogue.version, catalogue.fuzzy = "facho", "1", False
    output = BytesIO()
    write_po(output, catalogue, width=110, sort_output=True, include_lineno=False, ignore_obsolete=True)
    return b"".join(line for line in output.getvalue().splitlines(keepends=True) if not line.startswith(VOLATILE))


def _python_of(path: Path) -> bytes:
    """Return the file as something that the extractor reads: nothing, when no text can be in it."""
    if path.suffix == ".py":
        return path.read_bytes()
    if path.suffix in TEMPLATES:
        # The template's own indentation would be a syntax error in what Django makes of it.
        lines = templatize(path.read_text(), origin=str(path)).splitlines()
        return "\n".join(line.lstrip() for line in lines).encode()
    if path.suffix == ".yaml" and path.parent.name == "definitions":
        return "\n".join(f"gettext_noop({text!r})" for text in _sentences_of(path)).encode()
    return b""


def _sentences_of(path: Path) -> list[str]:
    """Return what operators read of a vendor definition: which OLTs it covers, and why look-alikes are not polled."""
    definition = yaml.safe_load(path.read_text("utf-8"))
    recognition = definition["recognition"]
    said = (definition["title"], recognition.get("otherwise", ""), *recognition.get("refused", {}).values())
    return [text.strip() for text in said if text]


if __name__ == "__main__":
    sys.exit(main())
