"""Writes many rows with one statement: Django's own ways take a CASE over all of them, or a statement per few.

PostgreSQL gets the rows as one array a column, SQLite a prepared statement. `in_shard` selects one engine's rows.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import Any

from django.db import connection, models
from django.db.models import F, Q
from django.db.models.functions import Mod
from django.db.models.lookups import Exact

from facho.infrastructure.statements import open_cursor
from facho.polling.domain.lease import Shard

Row = Sequence[Any]
Fields = Sequence["models.Field[Any, Any]"]


def update_values(model: type[models.Model], names: Sequence[str], rows: Sequence[Row]) -> None:
    """Set these fields of rows that exist; each row begins with its primary key. JSON is given as its text."""
    if not rows:
        return
    key, *fields = _fields(model, ["pk", *names])
    table = _table(model)
    if connection.vendor == "postgresql":
        sets = ", ".join(f"{_column(field)} = new.{_column(field)}" for field in fields)
        names_of = ", ".join(_column(field) for field in (key, *fields))
        statement = (
            f"UPDATE {table} SET {sets} FROM unnest({_arrays([key, *fields])}) AS new({names_of}) "  # noqa: S608 our own names
            f"WHERE {table}.{_column(key)} = new.{_column(key)}"
        )
        _execute(statement, [key, *fields], rows)
        return
    sets = ", ".join(f"{_column(field)} = %s" for field in fields)
    statement = f"UPDATE {table} SET {sets} WHERE {_column(key)} = %s"  # noqa: S608 our own names
    _execute(statement, [*fields, key], [[*values, pk] for pk, *values in rows])


def update_numbers(
    model: type[models.Model],
    keys: Sequence[int],
    columns: Mapping[str, Sequence[int | None]],
    *,
    kept: Collection[str] = (),
    stamps: Mapping[str, datetime] = MappingProxyType({}),
) -> int:
    """Set number fields where one differs; None leaves a `kept` field and clears others. Returns how many."""
    if not keys:
        return 0
    key, *fields = _fields(model, ["pk", *columns])
    stamped, table = _fields(model, list(stamps)), _table(model)
    is_postgresql = connection.vendor == "postgresql"
    place = "new.{0}" if is_postgresql else "%s"
    new = [
        (f"coalesce({place}, {table}.{{0}})" if field.name in kept else place).format(_column(field))
        for field in fields
    ]
    old = [f"{table}.{_column(field)}" for field in fields]
    sets = [f"{_column(field)} = {value}" for field, value in zip(fields, new, strict=True)]
    sets += [f"{_column(field)} = %s" for field in stamped]
    differ = " OR ".join(
        f"{one} IS {'DISTINCT FROM' if is_postgresql else 'NOT'} {other}" for one, other in zip(old, new, strict=True)
    )
    stamp_values = [connection.ops.adapt_datetimefield_value(stamp) for stamp in stamps.values()]
    with open_cursor() as cursor:
        if is_postgresql:
            names = ", ".join(map(_column, (key, *fields)))
            cursor.execute(
                f"UPDATE {table} SET {', '.join(sets)} FROM unnest({_arrays([key, *fields])}) AS new({names}) "  # noqa: S608 our own names
                f"WHERE {table}.{_column(key)} = new.{_column(key)} AND ({differ})",
                [*stamp_values, *map(_numbers, (keys, *columns.values()))],
            )
        else:
            cursor.executemany(
                f"UPDATE {table} SET {', '.join(sets)} WHERE {_column(key)} = %s AND ({differ})",  # noqa: S608 our own names
                [(*row, *stamp_values, pk, *row) for pk, *row in zip(keys, *columns.values(), strict=True)],
            )
        return int(cursor.rowcount)


def insert_values(
    model: type[models.Model],
    names: Sequence[str],
    rows: Sequence[Row],
    *,
    unique: Sequence[str] = (),
    ignore_conflicts: bool = False,
    returning: Sequence[str] = (),
) -> list[Row]:
    """Insert rows with these fields; where one with the same `unique` fields exists, the others overwrite it.

    With `ignore_conflicts` those that a unique constraint refuses are left out. Returns, of what was written, the
    fields that are wanted, as the database has them; SQLite takes some 32,000 values in such a statement.
    """
    if not rows:
        return []
    fields = _fields(model, names)
    columns = ", ".join(map(_column, fields))
    end = " ON CONFLICT DO NOTHING" if ignore_conflicts else _on_conflict(fields, unique)
    if returning:
        end += f" RETURNING {', '.join(map(_column, _fields(model, returning)))}"
    places = f"({', '.join(['%s'] * len(fields))})"
    if connection.vendor == "postgresql":
        source = f"SELECT * FROM unnest({_arrays(fields)})"  # noqa: S608 our own names
    else:
        # Only a statement for all rows returns anything.
        source = f"VALUES {', '.join([places] * len(rows)) if returning else places}"
    return _execute(f"INSERT INTO {_table(model)} ({columns}) {source}{end}", fields, rows, returns=bool(returning))


def _on_conflict(fields: Fields, unique: Sequence[str]) -> str:
    if not unique:
        return ""
    keys = ", ".join(_column(field) for field in fields if field.name in unique)
    sets = ", ".join(f"{_column(field)} = excluded.{_column(field)}" for field in fields if field.name not in unique)
    return f" ON CONFLICT ({keys}) DO UPDATE SET {sets}"


def _execute(statement: str, fields: Fields, rows: Sequence[Row], *, returns: bool = False) -> list[Row]:
    with open_cursor() as cursor:
        if connection.vendor == "postgresql":
            columns = zip(*rows, strict=True)
            cursor.execute(statement, [_array(field, values) for field, values in zip(fields, columns, strict=True)])
            return list(cursor.fetchall()) if returns else []
        if not returns:
            cursor.executemany(statement, _adapted(fields, rows))
            return []
        cursor.execute(statement, [value for row in _adapted(fields, rows) for value in row])
        return list(cursor.fetchall())


def _array(field: "models.Field[Any, Any]", values: Row) -> str | list[Any]:
    """Write a column as PostgreSQL reads arrays: psycopg looks at every value, which took a third of a poll's CPU."""
    if isinstance(field, models.BinaryField):
        return list(values)
    if not isinstance(field, models.CharField | models.TextField | models.JSONField):
        return _numbers(values)
    # Text holds no NUL in PostgreSQL, so it can stand between the values while all of them are escaped at once.
    joined = "\0".join(values)
    if joined.count("\0") >= len(values):
        raise ValueError("text with a NUL cannot be stored")
    escaped = joined.replace("\\", "\\\\").replace('"', '\\"').replace("\0", '","')
    return f'{{"{escaped}"}}'


def _numbers(values: Row) -> str:
    return "{" + ",".join(["NULL" if value is None else str(value) for value in values]) + "}"


def _adapted(fields: Fields, rows: Sequence[Row]) -> Sequence[Row]:
    """Write times and days as the database of Django does; everything else goes as it is."""
    ops = connection.ops
    ways: dict[int, Callable[[Any], Any]] = {
        number: ops.adapt_datetimefield_value if isinstance(field, models.DateTimeField) else ops.adapt_datefield_value
        for number, field in enumerate(fields)
        if isinstance(field, models.DateField)
    }
    if not ways:
        return rows
    adapted = [list(row) for row in rows]
    for row in adapted:
        for number, adapt in ways.items():
            row[number] = adapt(row[number])
    return adapted


def _fields(model: type[models.Model], names: Sequence[str]) -> "list[models.Field[Any, Any]]":
    known = {field.name: field for field in model._meta.concrete_fields}
    key = next(field for field in model._meta.concrete_fields if field.primary_key)
    return [key if name == "pk" else known[name] for name in names]


def _table(model: type[models.Model]) -> str:
    return connection.ops.quote_name(model._meta.db_table)


def _column(field: "models.Field[Any, Any]") -> str:
    return connection.ops.quote_name(str(field.column))


def _arrays(fields: Fields) -> str:
    return ", ".join(f"%s::{field.cast_db_type(connection)}[]" for field in fields)


def in_shard(column: str, shard: Shard) -> Q:
    """Match rows whose OLT, named by `column`, is the shard's; a single engine asks for nothing more than before."""
    return Q() if shard.is_whole else Q(Exact(Mod(F(column), shard.count), shard.remainder))
