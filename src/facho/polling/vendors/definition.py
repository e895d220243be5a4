"""A vendor definition: everything the rest of the system needs to read one family of devices."""

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from facho.polling.domain.collection import CollectRequest
from facho.polling.domain.execution_state import QueryType
from facho.polling.domain.onu_table import OnuTable
from facho.polling.snmp.ber import Oid
from facho.polling.snmp.session import MOST_TIMEOUTS
from facho.polling.snmp.target import CHEAP
from facho.polling.vendors.column import Column, RowRule, settle
from facho.polling.vendors.decoders import parse_oid
from facho.polling.vendors.index import Index, LearnedIndex, NamedPortsIndex, Place
from facho.polling.vendors.notifications import NO_RULES, NotificationRules
from facho.polling.vendors.vocabulary import Confidence, Cost, Scope, Typed

SERIAL, MAC, OLT_NAME = "onu.serial", "onu.mac", "onu.id"
RUN_STATE = "onu.run_state"
# What tells one ONU from another, the best first; what the OLT calls it tells its place only.
IDENTITY = (SERIAL, MAC, OLT_NAME)
_MAX_DESCRIPTION = 1024


@dataclass(frozen=True, slots=True)
class Refusal:
    """A device that looks like a family but must not be polled as one, with the message for the operator."""

    sentence: str


@dataclass(frozen=True, slots=True)
class Recognition:
    """How a family is recognised. Under a shared prefix a device must match a further rule or is refused."""

    prefixes: tuple[Oid, ...]
    models: Mapping[Oid, str]
    refused: Mapping[Oid, str]
    description: re.Pattern[str] | None
    # A device under the prefix that has rows below one of these is of the family, whatever it calls itself.
    tables: tuple[Oid, ...]
    otherwise: str


@dataclass(frozen=True, slots=True)
class CostClass:
    timeout_seconds: float
    retries: int
    min_interval_seconds: int

    @property
    def tries(self) -> int:
        """Sends in total, the first one included."""
        return self.retries + 1


@dataclass(frozen=True, slots=True)
class Polling:
    max_repetitions: int
    max_varbinds: int
    in_flight: int
    classes: Mapping[Cost, CostClass]


@dataclass(frozen=True, slots=True)
class Table:
    name: str
    oid: Oid
    index: Index
    columns: tuple[Column, ...]


@dataclass(frozen=True, slots=True)
class Job:
    """A ready-made job; a chained one runs right after its master, at its interval."""

    slug: str
    name: str
    query_type: QueryType
    interval_seconds: int
    columns: tuple[str, ...]
    chain_of: str | None
    priority: int | None


@dataclass(frozen=True, slots=True)
class Definition:
    key: str
    brand: str
    title: str
    confidence: Confidence
    notes: tuple[str, ...]
    recognition: Recognition
    indexes: Mapping[str, Index]
    tables: tuple[Table, ...]
    columns: Mapping[str, Column]
    polling: Polling
    jobs: tuple[Job, ...]
    # The ONU indexes by their length, which tells them apart.
    onu_indexes: Mapping[int, Index]
    row_rules: Mapping[str, RowRule]
    notifications: NotificationRules = NO_RULES

    def column(self, key: str) -> Column:
        """KeyError if this family does not have it."""
        return self.columns[key]

    def has_column(self, key: str) -> bool:
        return key in self.columns

    def readings(self, key: str) -> tuple[Column, ...]:
        return (self.columns[key], *(column for column in self.columns.values() if column.shares == key))

    def identity_columns(self, keys: Collection[str] = ()) -> tuple[str, ...]:
        """Return the columns a discovery walks: the identity columns among the keys, else the best available."""
        offered = [key for key in IDENTITY if key in self.columns]
        return tuple(key for key in offered if key in keys) or tuple(offered[:1])

    @property
    def has_ports(self) -> bool:
        """Whether ONU indexes contain the PON port."""
        return all("port" in index.fields for index in self.onu_indexes.values())

    @property
    def naming_columns(self) -> tuple[str, ...]:
        """Columns to walk before rows can be identified; empty if their indexes are enough."""
        learned = (index for index in self.indexes.values() if isinstance(index, LearnedIndex | NamedPortsIndex))
        return tuple(dict.fromkeys(index.learned_from for index in learned))

    def learn(self, naming: Mapping[str, Mapping[Oid, Typed]], last: Iterable[Place] = ()) -> "Definition":
        """Return this definition for one device, given its naming columns and the last places of its ONUs."""
        by_number = {place.onu: place for place in last}
        indexes = {
            name: index.learn(naming[index.learned_from], by_number)
            if isinstance(index, LearnedIndex | NamedPortsIndex)
            else index
            for name, index in self.indexes.items()
        }
        columns = {key: replace(column, index=indexes[column.index.name]) for key, column in self.columns.items()}
        tables = [
            replace(
                table, index=indexes[table.index.name], columns=tuple(columns[column.key] for column in table.columns)
            )
            for table in self.tables
        ]
        return replace(
            self,
            indexes=MappingProxyType(indexes),
            columns=MappingProxyType(columns),
            tables=tuple(tables),
            onu_indexes=MappingProxyType(
                {
                    size: indexes[index.name] if isinstance(index, LearnedIndex | NamedPortsIndex) else index
                    for size, index in self.onu_indexes.items()
                }
            ),
        )

    def companions(self, keys: Iterable[str]) -> tuple[str, ...]:
        """Return keys with those of the columns that stand in for them or decide whether they count."""
        wanted = dict.fromkeys(keys)
        is_identity = any(key in IDENTITY for key in wanted)
        for key, rule in self.row_rules.items():
            if rule.lists and is_identity:
                wanted[key] = None
            if rule.fills in wanted:
                wanted[key] = None
            if key in wanted:
                wanted |= dict.fromkeys(rule.needed)
        return tuple(dict.fromkeys(self.columns[key].shares or key for key in wanted))

    def guards(self, keys: Iterable[str]) -> tuple[str, ...]:
        """Return keys with those that show whether their rows are what they are taken for."""
        asked = tuple(keys)
        guards = (self.row_rules[key].guard for key in asked if key in self.row_rules)
        return tuple(dict.fromkeys((*asked, *filter(None, guards))))

    def settle(self, table: OnuTable) -> OnuTable:
        """Return what was read as columns decide about each other."""
        return settle(self.row_rules, table) if self.row_rules else table

    def is_listed(self, row: Mapping[str, object]) -> bool:
        """Whether a row read by a discovery is an ONU and not a free place."""
        return all(row.get(key) in rule.lists for key, rule in self.row_rules.items() if rule.lists)

    def is_free(self, row: Mapping[str, object]) -> bool:
        """Whether a row says of itself that it is a free place."""
        listed = [(row.get(key), rule.lists) for key, rule in self.row_rules.items() if rule.lists]
        return any(value is not None and value not in lists for value, lists in listed)

    def fills(self, key: str) -> str:
        """Return the key whose missing values a column has; empty if none."""
        return self.row_rules[key].fills if key in self.row_rules else ""

    @property
    def listing_columns(self) -> tuple[str, ...]:
        return tuple(key for key, rule in self.row_rules.items() if rule.lists)

    def columns_of(self, scope: Scope) -> tuple[Column, ...]:
        return tuple(column for column in self.columns.values() if column.index.scope is scope)

    def reads_onus(self, keys: Iterable[str], oids: Iterable[str] = ()) -> bool:
        """Whether any of these columns, or OIDs of columns, is about ONUs."""
        of_onus = self.columns_of(Scope.ONU)
        known, numbers = {column.key for column in of_onus}, {column.oid for column in of_onus}
        return any(key in known for key in keys) or any(oid_of(oid) in numbers for oid in oids if oid)

    def columns_at(self, oid: Oid) -> tuple[Column, ...]:
        """Return the columns at, above or below an OID, without aliases."""
        size = len(oid)
        return tuple(
            column
            for column in self.columns.values()
            if oid and not column.shares and oid[: len(column.oid)] == column.oid[:size]
        )

    def decode_index(self, suffix: Oid) -> Place | None:
        """Return the ONU's place of a row suffix, None if no ONU index of this family matches."""
        index = self.onu_indexes.get(len(suffix))
        return index.decode(suffix) if index else None

    def job(self, slug: str) -> Job:
        for job in self.jobs:
            if job.slug == slug:
                return job
        raise KeyError(slug)

    def cost_of(self, keys: Iterable[str]) -> Cost:
        return max((self.columns[key].cost for key in keys), key=list(Cost).index)

    def safe_interval_seconds(self, keys: Iterable[str]) -> int:
        """Return the shortest interval at which these columns may be read together without hurting the device."""
        return max(self.polling.classes[self.columns[key].cost].min_interval_seconds for key in keys)

    def recognise(self, sys_object_id: Oid | str, sys_descr: str) -> "Definition | Refusal | None":
        """Return whether a device is of this family, only looks like it, or neither, by what it says of itself."""
        oid = oid_of(sys_object_id)
        rules = self.recognition
        sentence = _longest(rules.refused, oid)
        if sentence:
            return Refusal(sentence)
        if _longest(rules.models, oid):
            return self
        if not any(oid[: len(prefix)] == prefix for prefix in rules.prefixes):
            return None
        if rules.description is not None and rules.description.search(sys_descr[:_MAX_DESCRIPTION]):
            return self
        return self if rules.description is None and not rules.tables else Refusal(rules.otherwise)

    def may_be(self, sys_object_id: Oid | str) -> bool:
        """Whether the tables of a device with this id can show that it is of this family."""
        oid, rules = oid_of(sys_object_id), self.recognition
        is_under = any(oid[: len(prefix)] == prefix for prefix in rules.prefixes)
        return bool(rules.tables) and is_under and not _longest(rules.refused, oid)

    def model_name(self, sys_object_id: Oid | str, sys_descr: str) -> str | None:
        """Return the model name, from the description where the family has it there, else from the id."""
        pattern = self.recognition.description
        match = pattern.search(sys_descr[:_MAX_DESCRIPTION]) if pattern else None
        model = match.groupdict().get("model") if match else None
        return model or _longest(self.recognition.models, oid_of(sys_object_id))


def oid_of(value: Oid | str) -> Oid:
    """Return an OID as a tuple; the empty OID, which matches nothing, if invalid."""
    if isinstance(value, tuple):
        return value
    try:
        return parse_oid(value.strip().strip("."))
    except ValueError:
        return ()


def _longest(table: Mapping[Oid, str], oid: Oid) -> str | None:
    """Return the entry of the longest prefix of the OID; agents append `.0` or a board to their model's id."""
    for length in range(len(oid), 0, -1):
        if oid[:length] in table:
            return table[oid[:length]]
    return None


# Of a small chassis with 817 ONUs: a page of stored values costs so much where the way is short, and each value a
# little. A value that the OLT asks its ONU for costs 105 to 290 ms an ONU, however many columns.
PAGE_SECONDS = 0.05
# One answer that was late, or came to a second question, does not make every page so.
MAX_PAGE_SECONDS = 0.25
CELL_SECONDS = 0.00025
LIVE_ONU_SECONDS = 0.2
ONUS_PER_PORT = 32
# Tables of the OLT itself are short compared with its ONUs.
OTHER_ROWS = {Scope.BOARD: 16, Scope.PART: 8, Scope.AUTOFIND: 8, Scope.INTERFACE: 64, Scope.SCALAR: 1}


def estimate_read_seconds(
    definition: Definition, keys: Collection[str], *, onus: int, round_trip_seconds: float = 0.0
) -> float:
    """Estimate how long one read of these columns takes on an OLT with that many ONUs."""
    columns = [definition.column(key) for key in keys or definition.identity_columns()]
    polling, page_seconds = definition.polling, max(PAGE_SECONDS, min(round_trip_seconds, MAX_PAGE_SECONDS))
    seconds = 0.0
    for scope, width in Counter(column.index.scope for column in columns).items():
        rows = {Scope.ONU: onus, Scope.PON: estimate_ports(onus)}.get(scope) or OTHER_ROWS.get(scope, 1)
        pages = math.ceil(rows / polling.max_repetitions) * math.ceil(width / polling.max_varbinds)
        seconds += pages * page_seconds + rows * width * CELL_SECONDS
    is_live = any(column.cost is Cost.LIVE and column.index.scope is Scope.ONU for column in columns)
    return seconds + (onus * LIVE_ONU_SECONDS if is_live else 0.0)


def longest_answer_seconds(definition: Definition | None, request: CollectRequest, max_timeout_seconds: float) -> float:
    """Return how long one request of this read may keep the OLT busy, by the reader's timeouts."""
    if definition is None:
        return min(CHEAP.timeout_s, max_timeout_seconds) * MOST_TIMEOUTS
    keys = [key for key in request.columns if definition.has_column(key)]
    # A read without columns is interactive and may read anything.
    is_live = not (keys or request.oids or request.query_type is QueryType.DISCOVERY)
    is_live = is_live or any(definition.column(key).cost is Cost.LIVE for key in keys)
    classes = definition.polling.classes
    slowest = max(rule.timeout_seconds for cost, rule in classes.items() if is_live or cost is not Cost.LIVE)
    return min(slowest, max_timeout_seconds) * MOST_TIMEOUTS


def estimate_ports(onus: int) -> int:
    return max(math.ceil(onus / ONUS_PER_PORT), 1)
