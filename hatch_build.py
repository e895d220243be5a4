"""Compiles the translations while the package is built, editable installs included."""

from pathlib import Path
from typing import Any

from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po
from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CompileTranslations(BuildHookInterface[Any]):
    """Writes a .mo beside each .po, so that neither GNU gettext nor a binary in git is needed."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile every catalogue below src."""
        for source in sorted(Path(self.root, "src").rglob("*.po")):
            with source.open("rb") as po, source.with_suffix(".mo").open("wb") as mo:
                write_mo(mo, read_po(po))
