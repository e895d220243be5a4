"""Sorts what a job asks for by what it is about, since that decides how it is read."""

from dataclasses import dataclass

from facho.polling.domain.collection import CollectRequest, FreeOid
from facho.polling.domain.task_type import QueryType
from facho.polling.snmp.oid import parse_oid
from facho.polling.vendors.column import Column
from facho.polling.vendors.definition import Definition
from facho.polling.vendors.vocabulary import Scope
from facho.snmp_get.free_oids import Wanted


class CannotRead(ValueError):
    """A job that means nothing on this family; its text says what of it."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The keys of columns about ONUs, waiting ONUs and the OLT itself, and the OIDs that no column stands for.

    `identity` is what a discovery walks, and empty for everything else.
    """

    identity: tuple[str, ...]
    onus: tuple[str, ...]
    waiting: tuple[str, ...]
    olt: tuple[str, ...]
    oids: tuple[Wanted, ...]


def plan_reading(definition: Definition, request: CollectRequest) -> Plan:
    """Find out what is to be read; an OID that is a column's is read as that column."""
    by_oid = {column.oid: column for column in definition.columns.values() if not column.shares}
    wanted = [_wanted(free) for free in request.oids]
    columns = [_column(definition, key) for key in request.columns]
    columns += [by_oid[each.oid] for each in wanted if each.oid in by_oid]
    is_discovery = request.query_type is QueryType.DISCOVERY
    plan = Plan(
        identity=definition.identity_columns(request.columns) if is_discovery else (),
        onus=_keys(columns, Scope.ONU),
        waiting=_keys(columns, Scope.AUTOFIND),
        olt=_keys(columns, *(scope for scope in Scope if scope not in (Scope.ONU, Scope.AUTOFIND))),
        oids=tuple(each for each in wanted if each.oid not in by_oid),
    )
    if is_discovery and not plan.identity:
        raise CannotRead(f"{definition.key} has no column that tells ONUs apart")
    if not (columns or plan.oids or is_discovery):
        raise CannotRead("the job reads nothing")
    return plan


def _wanted(free: FreeOid) -> Wanted:
    try:
        return Wanted(parse_oid(free.oid), free.name, free.unit)
    except ValueError as error:
        raise CannotRead(f"{free.oid!r} is no OID") from error


def _column(definition: Definition, key: str) -> Column:
    if not definition.has_column(key):
        raise CannotRead(f"{definition.key} has no column {key!r}")
    return definition.column(key)


def _keys(columns: list[Column], *scopes: Scope) -> tuple[str, ...]:
    return tuple(dict.fromkeys(column.key for column in columns if column.index.scope in scopes))
