"""A vendor definition: everything the rest of the system needs to read one family of devices."""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from facho.polling.domain.task_type import QueryType
from facho.polling.snmp.ber import Oid
from facho.polling.vendors.column import Column
from facho.polling.vendors.decoders import parse_oid
from facho.polling.vendors.index import Index, Place
from facho.polling.vendors.learned_index import LearnedIndex
from facho.polling.vendors.values import Typed
from facho.polling.vendors.vocabulary import Confidence, Cost, Scope

SERIAL, MAC, OLT_NAME = "onu.serial", "onu.mac", "onu.id"
# What tells one ONU from another, the best first; what the OLT calls it tells its place only.
IDENTITY = (SERIAL, MAC, OLT_NAME)
_MAX_DESCRIPTION = 1024


@dataclass(frozen=True, slots=True)
class Refusal:
    """A device that looks like one of a family and is not to be polled as one, with the sentence for the operator."""

    sentence: str


@dataclass(frozen=True, slots=True)
class Recognition:
    """By what a family is recognised. Under a shared prefix a device has to prove itself or is refused."""

    prefixes: tuple[Oid, ...]
    models: Mapping[Oid, str]
    refused: Mapping[Oid, str]
    description: re.Pattern[str] | None
    otherwise: str


@dataclass(frozen=True, slots=True)
class CostClass:
    """How to ask for columns of one cost."""

    timeout_seconds: float
    retries: int
    min_interval_seconds: int

    @property
    def tries(self) -> int:
        """Sends in all, the first one included."""
        return self.retries + 1


@dataclass(frozen=True, slots=True)
class Polling:
    """How this family wants to be asked."""

    max_repetitions: int
    max_varbinds: int
    in_flight: int
    classes: Mapping[Cost, CostClass]


@dataclass(frozen=True, slots=True)
class Table:
    """A table of the device: columns that share an index."""

    name: str
    oid: Oid
    index: Index
    columns: tuple[Column, ...]


@dataclass(frozen=True, slots=True)
class Job:
    """A ready-made job; a chained one runs right after its master and at its pace."""

    slug: str
    name: str
    query_type: QueryType
    interval_seconds: int
    columns: tuple[str, ...]
    chain_of: str | None
    priority: int | None


@dataclass(frozen=True, slots=True)
class Definition:
    """One family of devices, as loaded from its file."""

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

    def column(self, key: str) -> Column:
        """Return a column; KeyError when this family does not have it."""
        return self.columns[key]

    def has_column(self, key: str) -> bool:
        return key in self.columns

    def readings(self, key: str) -> tuple[Column, ...]:
        """Return the column and those that are decoded from the same value."""
        return (self.columns[key], *(column for column in self.columns.values() if column.shares == key))

    def identity_columns(self, keys: Collection[str] = ()) -> tuple[str, ...]:
        """Return what a discovery walks: the columns of identity among the keys, else the best that there is."""
        offered = [key for key in IDENTITY if key in self.columns]
        return tuple(key for key in offered if key in keys) or tuple(offered[:1])

    @property
    def tells_ports(self) -> bool:
        """Tell whether the indexes of ONUs say on which PON port each of them is."""
        return all("port" in index.fields for index in self.onu_indexes.values())

    @property
    def naming_columns(self) -> tuple[str, ...]:
        """What has to be walked before rows can be told apart; empty where their numbers speak for themselves."""
        learned = (index for index in self.indexes.values() if isinstance(index, LearnedIndex))
        return tuple(dict.fromkeys(index.learned_from for index in learned))

    def learn(self, told: Mapping[str, Mapping[Oid, Typed]], last: Iterable[Place] = ()) -> "Definition":
        """Return this definition for one device, given its naming columns and where its ONUs were when last seen."""
        by_number = {place.onu: place for place in last}
        indexes = {
            name: index.learn(told[index.learned_from], by_number) if isinstance(index, LearnedIndex) else index
            for name, index in self.indexes.items()
        }
        columns = {key: replace(column, index=indexes[column.index.name]) for key, column in self.columns.items()}
        return replace(
            self,
            indexes=MappingProxyType(indexes),
            columns=MappingProxyType(columns),
            tables=tuple(_rebuilt(table, indexes, columns) for table in self.tables),
            onu_indexes=MappingProxyType({size: indexes[index.name] for size, index in self.onu_indexes.items()}),
        )

    def columns_of(self, scope: Scope) -> tuple[Column, ...]:
        return tuple(column for column in self.columns.values() if column.index.scope is scope)

    def columns_at(self, oid: Oid) -> tuple[Column, ...]:
        """Return the columns that an OID lies in or above, without those that another one is read for."""
        return tuple(
            column for column in self.columns.values() if not column.shares and _overlap(oid, column.oid) and oid
        )

    def decode_index(self, suffix: Oid) -> Place | None:
        """Return the ONU's place that a row suffix means, None when no ONU index of this family made it."""
        index = self.onu_indexes.get(len(suffix))
        return index.decode(suffix) if index else None

    def job(self, slug: str) -> Job:
        """Return a ready-made job; KeyError when there is none of that slug."""
        for job in self.jobs:
            if job.slug == slug:
                return job
        raise KeyError(slug)

    def cost_of(self, keys: Iterable[str]) -> Cost:
        """Return the dearest cost among the columns."""
        return max((self.columns[key].cost for key in keys), key=list(Cost).index)

    def safe_interval_seconds(self, keys: Iterable[str]) -> int:
        """Return the shortest interval at which these columns may be read together without hurting the device."""
        return max(self.polling.classes[self.columns[key].cost].min_interval_seconds for key in keys)

    def recognise(self, sys_object_id: Oid | str, sys_descr: str) -> "Definition | Refusal | None":
        """Say whether a device is of this family, only looks like it, or has nothing to do with it."""
        oid = oid_of(sys_object_id)
        rules = self.recognition
        sentence = _longest(rules.refused, oid)
        if sentence:
            return Refusal(sentence)
        if _longest(rules.models, oid):
            return self
        if not any(oid[: len(prefix)] == prefix for prefix in rules.prefixes):
            return None
        if rules.description is None or rules.description.search(sys_descr[:_MAX_DESCRIPTION]):
            return self
        return Refusal(rules.otherwise)

    def model_name(self, sys_object_id: Oid | str, sys_descr: str) -> str | None:
        """Return the model's name, from its description where the family tells it there, else from its id."""
        pattern = self.recognition.description
        match = pattern.search(sys_descr[:_MAX_DESCRIPTION]) if pattern else None
        told = match.groupdict().get("model") if match else None
        return told or _longest(self.recognition.models, oid_of(sys_object_id))


def _rebuilt(table: Table, indexes: Mapping[str, Index], columns: Mapping[str, Column]) -> Table:
    own = tuple(columns[column.key] for column in table.columns)
    return replace(table, index=indexes[table.index.name], columns=own)


def _overlap(one: Oid, other: Oid) -> bool:
    size = min(len(one), len(other))
    return one[:size] == other[:size]


def oid_of(value: Oid | str) -> Oid:
    """Return an OID as a tuple; what is not one becomes the empty OID, which nothing matches."""
    if isinstance(value, tuple):
        return value
    try:
        return parse_oid(value.strip().strip("."))
    except ValueError:
        return ()


def _longest(table: Mapping[Oid, str], oid: Oid) -> str | None:
    """Return the entry for the longest prefix of the OID; agents append `.0` or a board to their model's id."""
    for length in range(len(oid), 0, -1):
        if oid[:length] in table:
            return table[oid[:length]]
    return None
