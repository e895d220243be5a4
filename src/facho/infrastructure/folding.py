"""Searches texts without their accents and capitals, in either database, as people type them at night."""

import re
import unicodedata

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import CharField, GeneratedField, Lookup
from django.db.models.sql.compiler import SQLCompiler

# PostgreSQL has it from a migration, and indexes by it.
FUNCTION = "facho_fold"
# More than any text that is searched. Normalising takes the square of a text's length: 60 kB of accents took seconds.
LONGEST = 1_000
Sql = tuple[str, tuple[str | int, ...]]

_MARKS = re.compile("[\u0300-\u036f]+")


def fold(text: str) -> str:
    """Return how a text is searched: in small letters, each without its marks; no further than LONGEST."""
    return text.lower() if text.isascii() else _MARKS.sub("", _decompose(text)).casefold()


class Has(Lookup):
    """A part of a text, both folded: `name__has="rio"` finds "Río"."""

    lookup_name = "has"
    # Always a text, also where the other side is an expression whose type is not known yet.
    prepare_rhs = False

    def as_sql(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper) -> Sql:
        """Let the database fold both, in one way; what becomes a wildcard by it does so before it is escaped."""
        text, parameters = self.process_lhs(compiler, connection)
        pattern = _pattern(_decompose(self.rhs), connection)
        return f"{FUNCTION}({text}) LIKE {FUNCTION}(%s)", (*parameters, pattern)

    def as_sqlite(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper) -> Sql:
        """Call Python for letters beyond ASCII alone; LIKE takes the others whatever their case, ten times as fast."""
        text, parameters = self.process_lhs(compiler, connection)
        is_beyond = f"LENGTH({text}) <> LENGTH(CAST({text} AS BLOB))"
        folded = f"CASE WHEN {is_beyond} THEN {FUNCTION}({text}) ELSE {text} END"
        return f"{folded} LIKE %s ESCAPE '\\'", (*[*parameters] * 4, _pattern(fold(self.rhs), connection))


def register() -> None:
    """Let every text be searched so."""
    CharField.register_lookup(Has)
    # A generated text had its lookups copied before ours was there.
    GeneratedField.register_lookup(Has)


def teach_to_fold(connection: BaseDatabaseWrapper, **_about: object) -> None:
    """Give a session of SQLite the function that PostgreSQL has."""
    if connection.vendor == "sqlite":
        connection.connection.create_function(FUNCTION, 1, fold, deterministic=True)


def _decompose(text: str) -> str:
    return unicodedata.normalize("NFKD", text[:LONGEST])


def _pattern(text: str, connection: BaseDatabaseWrapper) -> str:
    return f"%{connection.ops.prep_for_like_query(text)}%"
