"""Queries of Django whose SQL is built once: building it takes ten times as long as running it.

What changes from call to call is `Given` by name; what does not is written into the SQL, so that partial indexes fit.
PostgreSQL gets the values apart from the SQL, so that a session can keep its plan.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from django.db import DEFAULT_DB_ALIAS, connection, connections, models
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.utils import CursorWrapper
from django.db.models import Expression, QuerySet
from django.db.models.sql import UpdateQuery
from django.db.models.sql.compiler import SQLCompiler

Row = tuple[Any, ...]
Values = Mapping[str, Any]


class Given(Expression):
    """A value that is given when the statement runs; its field says how it is written, where that matters."""

    def __init__(self, name: str, field: "models.Field[Any, Any] | None" = None) -> None:
        super().__init__(output_field=field)
        self.name = name
        self.written_as = field

    def as_sql(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper) -> tuple[str, tuple[Any, ...]]:
        """Leave its place open."""
        return "%s", (self,)


class GivenMany(Expression):
    conditional = True
    output_field = models.BooleanField()

    def __init__(self, name: str, *columns: str) -> None:
        super().__init__()
        self.name = name
        self.columns: list[Any] = [models.F(column) for column in columns]

    def get_source_expressions(self) -> list[Any]:
        return self.columns

    def set_source_expressions(self, exprs: Sequence[Any]) -> None:
        self.columns = list(exprs)

    def as_sql(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper) -> tuple[str, tuple[Any, ...]]:
        """Compare with an array for each column, or with what SQLite unpacks."""
        columns, places = [compiler.compile(column)[0] for column in self.columns], range(len(self.columns))
        if connection.vendor == "postgresql":
            arrays = ", ".join(["%s::bigint[]"] * len(columns))
            numbers, given = f"SELECT * FROM unnest({arrays})", [Given(self.name, _Numbers(n)) for n in places]  # noqa: S608 only placeholders
        else:
            each = ", ".join(f"json_extract(value, '$[{number}]')" for number in places)
            numbers, given = f"SELECT {each} FROM json_each(%s)", [Given(self.name, _Numbers(None))]  # noqa: S608 only placeholders
        return f"({', '.join(columns)}) IN ({numbers})", tuple(given)


class GivenFor(Expression):
    """The JSON that is given for the number in a column, by a mapping of numbers; NULL where there is none."""

    output_field = models.JSONField()

    def __init__(self, name: str, column: str) -> None:
        super().__init__()
        self.name = name
        self.column: Any = models.F(column)

    def get_source_expressions(self) -> list[Any]:
        return [self.column]

    def set_source_expressions(self, exprs: Sequence[Any]) -> None:
        (self.column,) = exprs

    def as_sql(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper) -> tuple[str, tuple[Any, ...]]:
        """Look the number up in all that is given."""
        column, given = compiler.compile(self.column)[0], (Given(self.name, _JsonByNumber()),)
        if connection.vendor == "postgresql":
            return f"%s::jsonb -> ({column})::text", given
        return f"json_extract(%s, '$.\"' || {column} || '\"')", given


class _JsonByNumber(models.Field):  # type: ignore[type-arg]  # Django's own has no parameters when it runs
    def get_db_prep_save(self, value: Mapping[int, Any], connection: BaseDatabaseWrapper) -> str:
        return json.dumps(value)


class _Numbers(models.Field):  # type: ignore[type-arg]  # Django's own has no parameters when it runs
    """Rows of numbers, as PostgreSQL gets one of their columns and SQLite all of them."""

    def __init__(self, column: int | None) -> None:
        super().__init__()
        self._number = column

    def get_db_prep_save(self, value: Iterable[int | Sequence[int]], connection: BaseDatabaseWrapper) -> Any:
        rows = [[row] if isinstance(row, int) else list(row) for row in value]
        return json.dumps(rows) if self._number is None else [row[self._number] for row in rows]


@dataclass(frozen=True, slots=True)
class _Built:
    """A statement as one kind of database runs it."""

    sql: str
    given: tuple[tuple[str, "models.Field[Any, Any] | None"], ...]
    converted: Callable[[list[Row]], list[Row]]

    def values(self, given: Values, database: BaseDatabaseWrapper) -> list[Any]:
        """Return the values in their order, as the database takes them."""
        return [
            given[name] if field is None else field.get_db_prep_save(given[name], database)
            for name, field in self.given
        ]


class _Statement:
    """A statement that is built when it is first used, for each kind of database."""

    def __init__(self) -> None:
        self._built: dict[str, _Built] = {}

    def rows(self, **given: Any) -> list[Row]:
        built, cursor = self._run(given)
        with cursor:
            return built.converted(cursor.fetchall())

    def first(self, **given: Any) -> Row | None:
        return next(iter(self.rows(**given)), None)

    def run(self, **given: Any) -> int:
        _, cursor = self._run(given)
        with cursor:
            return int(cursor.rowcount)

    def run_each(self, rows: Iterable[Values]) -> int:
        """Run it once for each of these values, in their order; returns how many rows were changed in all."""
        database = connections[DEFAULT_DB_ALIAS]
        built = self._get(database)
        values = [built.values(given, database) for given in rows]
        if not values:
            return 0
        with open_cursor(database) as cursor:
            cursor.executemany(built.sql, values)
            return int(cursor.rowcount)

    def _run(self, given: Values) -> tuple[_Built, CursorWrapper]:
        # Each look at Django's `connection` searches for that of this thread.
        database = connections[DEFAULT_DB_ALIAS]
        built = self._get(database)
        cursor = open_cursor(database)
        cursor.execute(built.sql, built.values(given, database))
        return built, cursor

    def _get(self, database: BaseDatabaseWrapper) -> _Built:
        if database.vendor not in self._built:
            self._built[database.vendor] = self._build()
        return self._built[database.vendor]

    def _build(self) -> _Built:
        raise NotImplementedError


class Select(_Statement):
    """Reads rows of the `values_list` that `build` returns."""

    def __init__(self, build: Callable[[], QuerySet[Any, Any]]) -> None:
        super().__init__()
        self._queryset = build

    def _build(self) -> _Built:
        compiler = self._queryset().query.get_compiler(connection=connection)
        sql, values = compiler.as_sql()
        columns = [column for column, *_ in compiler.select[: compiler.col_count]]
        return _built(sql, values, "", _converter(compiler, columns))


class Update(_Statement):
    """Sets columns of the rows that `build` selects, and returns columns of those that it changed, if wanted."""

    def __init__(
        self, build: Callable[[], QuerySet[Any, Any]], *, returning: Sequence[str] = (), **values: object
    ) -> None:
        super().__init__()
        self._queryset = build
        self._values = values
        self._returning = returning

    def _build(self) -> _Built:
        queryset = self._queryset()
        model, query = queryset.model, cast(UpdateQuery, queryset.query.chain(UpdateQuery))
        query.add_update_values({name: _with_field(value, model, name) for name, value in self._values.items()})
        query.annotations = {}
        sql, parameters = query.get_compiler(connection=connection).as_sql()
        return _built(sql, parameters, *_returned(model, self._returning))


class Insert(_Statement):
    """Inserts a row and returns columns of it, if wanted; a refused duplicate is left out, or an error."""

    def __init__(
        self,
        model: type[models.Model],
        names: Sequence[str],
        *,
        returning: Sequence[str] = (),
        ignore_conflicts: bool = True,
    ) -> None:
        super().__init__()
        self._model = model
        self._names = names
        self._returning = returning
        self._end = " ON CONFLICT DO NOTHING" if ignore_conflicts else ""

    def _build(self) -> _Built:
        fields = [_field(self._model, name) for name in self._names]
        table, columns = connection.ops.quote_name(self._model._meta.db_table), ", ".join(map(_column, fields))
        places = ", ".join(["%s"] * len(fields))
        sql = f"INSERT INTO {table} ({columns}) VALUES ({places}){self._end}"  # noqa: S608 our own names
        given = [Given(name, field) for name, field in zip(self._names, fields, strict=True)]
        return _built(sql, given, *_returned(self._model, self._returning))


def _with_field(value: Any, model: type[models.Model], name: str) -> Any:
    """Let a given value of a column be written as the column is."""
    if isinstance(value, Given) and value.written_as is None:
        return Given(value.name, _field(model, name))
    return value


def _built(sql: str, parameters: Sequence[Any], end: str, converted: Callable[[list[Row]], list[Row]]) -> _Built:
    """Write constants into the SQL, and remember what is given in which order."""
    places = ["%s" if isinstance(value, Given) else _literal(value) for value in parameters]
    given = [value for value in parameters if isinstance(value, Given)]
    return _Built(_fill(sql, places) + end, tuple((each.name, each.written_as) for each in given), converted)


def _returned(model: type[models.Model], names: Sequence[str]) -> tuple[str, Callable[[list[Row]], list[Row]]]:
    """Return the end of a statement that returns columns of its rows, and what converts them."""
    if not names:
        return "", list
    fields = [_field(model, name) for name in names]
    compiler = QuerySet(model).query.get_compiler(connection=connection)
    columns = [field.get_col(model._meta.db_table) for field in fields]
    return f" RETURNING {', '.join(map(_column, fields))}", _converter(compiler, columns)


def _field(model: type[models.Model], name: str) -> Any:
    return next(field for field in model._meta.concrete_fields if name in (field.name, field.attname))


def _column(field: Any) -> str:
    return connection.ops.quote_name(field.column)


def _fill(sql: str, places: Sequence[str]) -> str:
    """Put texts at the places of the SQL; a doubled percent sign is none."""
    parts = sql.replace("%%", "\0").split("%s")
    if len(parts) != len(places) + 1:
        raise ValueError("the SQL has another number of places")
    return "".join(text for pair in zip(parts, [*places, ""], strict=True) for text in pair).replace("\0", "%%")


def _literal(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return ("TRUE" if value else "FALSE") if connection.vendor == "postgresql" else str(int(value))
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, str):
        return "'" + str.__str__(value).replace("'", "''").replace("%", "%%") + "'"
    raise TypeError(f"a {type(value).__name__} is given, not written into a statement")


def _converter(compiler: SQLCompiler, columns: list[Any]) -> Callable[[list[Row]], list[Row]]:
    """Build what turns columns as the database has them into values, as Django does."""
    converters = compiler.get_converters(columns)
    if not converters:
        return list
    return lambda rows: [tuple(row) for row in compiler.apply_converters(rows, converters)]


def open_cursor(database: BaseDatabaseWrapper | None = None) -> CursorWrapper:
    """Open a cursor whose values go apart from the SQL, for SQL that repeats: its plan is kept."""
    database = database or connections[DEFAULT_DB_ALIAS]
    if database.vendor != "postgresql":
        return database.cursor()
    # Its driver is there where a PostgreSQL is.
    from django.db.backends.postgresql.base import ServerBindingCursor

    database.ensure_connection()
    return database._prepare_cursor(ServerBindingCursor(database.connection))  # type: ignore[attr-defined, call-arg, no-any-return]


_WRITERS = (
    "SELECT DISTINCT virtualtransaction FROM pg_locks WHERE locktype = 'relation' AND mode = 'RowExclusiveLock'"
    " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
    " AND relation = %s::text::regclass AND pid <> pg_backend_pid()"
)


class SettledRows:
    """Says up to which id every row of a table is there that ever will be.

    PostgreSQL gives ids before the commit, so a row may appear below others that are already seen. A writer of
    a table holds a lock on it until the end of the transaction: once all who held one when the newest row was seen are
    gone, what they wrote is there too. SQLite has one writer at a time.
    """

    def __init__(self, model: type[models.Model]) -> None:
        self._table = model._meta.db_table
        self._newest = Select(lambda: model._default_manager.order_by("-pk").values_list("pk")[:1])
        self._awaited: tuple[int, frozenset[str]] = (0, frozenset())
        self.up_to = 0

    def look(self) -> int:
        """Look once, with one to three statements, outside a transaction."""
        newest, writers = self._awaited
        if not writers or not writers & self._load_writers():
            self.up_to = max(self.up_to, newest)
            row = self._newest.first()
            newest = row[0] if row else 0
            writers = self._load_writers() if newest > self.up_to else frozenset()
            self._awaited = newest, writers
            if not writers:
                self.up_to = max(self.up_to, newest)
        return self.up_to

    def _load_writers(self) -> frozenset[str]:
        database = connections[DEFAULT_DB_ALIAS]
        if database.vendor != "postgresql":
            return frozenset()
        with open_cursor(database) as cursor:
            cursor.execute(_WRITERS, [self._table])
            return frozenset(row[0] for row in cursor.fetchall())
