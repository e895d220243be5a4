"""Reviews a definition that is being written: every fault of its file at once, and what it leaves out.

The loader stops at the first fault. Here the part at fault is taken out of the data and the rest is loaded again, so
that a file is refused for the same reasons as when the product starts.

`judge_column` looks at what a column made of the rows that a device sent. Nothing there is proof: a suspicion is a
reason to look at the column again.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from facho.polling.domain.execution_state import QueryType
from facho.polling.snmp.ber import Oid, Value
from facho.polling.vendors.column import Column
from facho.polling.vendors.definition import IDENTITY, Definition
from facho.polling.vendors.index import Place
from facho.polling.vendors.loader import AUTOFIND_SERIAL, build_definition, check_file_name, read_text
from facho.polling.vendors.schema import DefinitionError, Section, parse
from facho.polling.vendors.vocabulary import Cost, Reject, Typed

# A person corrects the first ones and looks again.
MOST_FAULTS = 100
UNKNOWN_KEY = "unknown key"

_JOB = re.compile(r"jobs\[(\d+)\]")


class Gap(StrEnum):
    """Something that most families have and this definition does not."""

    RECOGNITION = "recognition"
    IDENTITY = "onu.serial"
    DISCOVERY = "jobs.discovery"
    RUN_STATE = "onu.run_state"
    LAST_DOWN_CAUSE = "onu.last_down_cause"
    DISTANCE = "onu.distance"
    DESCRIPTION = "onu.description"
    RX_POWER = "onu.rx_power"
    OLT_RX_POWER = "onu.olt_rx_power"
    MODEL = "onu.model"
    SW_VERSION = "onu.sw_version"
    ADMIN_STATE = "onu.admin_state"
    WAITING = "autofind.serial"


@dataclass(frozen=True, slots=True)
class Review:
    """What is wrong with a file; the definition is there only if nothing is."""

    definition: Definition | None
    faults: tuple[DefinitionError, ...] = ()

    @property
    def gaps(self) -> tuple[Gap, ...]:
        return find_gaps(self.definition) if self.definition else ()

    @property
    def unread(self) -> tuple[str, ...]:
        if self.definition is None:
            return ()
        read = {key for job in self.definition.jobs for key in job.columns}
        columns = self.definition.columns.values()
        return tuple(column.key for column in columns if (column.shares or column.key) not in read)


def review_file(file: Path) -> Review:
    try:
        text = read_text(file)
    except DefinitionError as error:
        return Review(None, (error,))
    found = review_text(text, file.name)
    if found.definition is not None:
        try:
            check_file_name(found.definition.key, file.name)
        except DefinitionError as error:
            return Review(None, (error,))
    return found


def review_text(text: str, source: str) -> Review:
    """Review the text of a definition; `source` is the name in the faults."""
    try:
        top = parse(text, source)
    except DefinitionError as error:
        return Review(None, (error,))
    draft = _FaultyFile(top.data)
    faults: list[DefinitionError] = []
    while len(faults) < MOST_FAULTS:
        try:
            loaded = build_definition(Section.of(draft.data, source, ""))
        except DefinitionError as error:
            fault = draft.in_the_file(error)
            # The same fault again: its part cannot be taken out, and hides what comes after it.
            if any(str(fault) == str(known) for known in faults):
                break
            if not draft.is_consequence(error):
                faults.append(fault)
            if not draft.take_out(error):
                break
        else:
            return Review(None if faults else loaded, tuple(faults))
    return Review(None, tuple(faults))


def find_gaps(definition: Definition) -> tuple[Gap, ...]:
    found = []
    rules = definition.recognition
    if not (rules.prefixes or rules.models):
        found.append(Gap.RECOGNITION)
    if not any(key in definition.columns for key in IDENTITY):
        found.append(Gap.IDENTITY)
    if not any(job.query_type is QueryType.DISCOVERY for job in definition.jobs):
        found.append(Gap.DISCOVERY)
    columns = [gap for gap in Gap if gap not in (Gap.RECOGNITION, Gap.IDENTITY, Gap.DISCOVERY)]
    return (*found, *(gap for gap in columns if gap.value not in definition.columns))


_COSTS = {cost.value: {"timeout_seconds": 5, "retries": 1, "min_interval_seconds": 1} for cost in Cost}
_DRAFT = "draft"
# What stands for a part at fault, so that the rest can be read.
_STAND_IN: Mapping[str, Any] = {
    "key": _DRAFT,
    "brand": _DRAFT,
    "title": _DRAFT,
    "confidence": "low",
    "notes": [],
    "recognition": {"prefixes": []},
    "indexes": {},
    "tables": {},
    "polling": {"max_repetitions": 10, "max_varbinds": 8, "in_flight": 1, "classes": _COSTS},
    "jobs": [],
}
_INDEX = {"scope": "scalar", "components": [0]}


class _FaultyFile:
    """The data of a file without the parts at fault, and what was taken out."""

    def __init__(self, data: Mapping[Any, Any]) -> None:
        self.data: dict[Any, Any] = deepcopy(dict(data))
        jobs = self.data.get("jobs")
        # The numbers that the remaining jobs have in the file.
        self._numbers = list(range(len(jobs))) if isinstance(jobs, list) else []
        self._columns: set[str] = set()
        self._has_lost_tables = False
        self._has_lost_indexes = False

    def in_the_file(self, error: DefinitionError) -> DefinitionError:
        """Return the error with the number that a job has in the file."""
        job = _JOB.match(error.path)
        if job is None:
            return error
        number = self._numbers[int(job[1])]
        return DefinitionError(error.source, f"jobs[{number}]{error.path[job.end() :]}", error.problem)

    def is_consequence(self, error: DefinitionError) -> bool:
        """Tell whether only what was taken out before makes this a fault."""
        if error.path.startswith("indexes."):
            index = self._at(("indexes", *self._keys(error.path)[1:2]))
            learned_from = index.get("learned_from") if isinstance(index, dict) else None
            return learned_from in self._columns or (self._has_lost_tables and "used by no table" in error.problem)
        if "names no index" in error.problem:
            return self._has_lost_indexes
        return error.path == "tables" and AUTOFIND_SERIAL in self._columns

    def take_out(self, error: DefinitionError) -> bool:
        """Take out the part at fault; False if there is none that could be."""
        keys = self._keys(error.path)
        if keys[:1] == ["notifications"]:
            # Nothing else needs it; its next fault shows when this one is corrected.
            return self.data.pop("notifications", None) is not None
        if error.problem == UNKNOWN_KEY:
            del self._at(keys[:-1])[keys[-1]]
            return True
        match keys:
            case ["jobs", int(number), *_]:
                self._take_job(number)
            case ["tables", str(table), "columns", str(column), *_]:
                self._take_column(table, column)
            case ["tables", str(table), "index"] if "names no index" in error.problem:
                self.data["indexes"].setdefault(_DRAFT, dict(_INDEX))
                self.data["tables"][table]["index"] = _DRAFT
                self._has_lost_tables = True
            case ["tables", str(table), *_]:
                self._take_table(table)
            case ["indexes", str(index), *_]:
                self.data["indexes"][index] = dict(_INDEX)
                if "used by no table" in error.problem:
                    del self.data["indexes"][index]
            case ["recognition", str(part), *rest] if part != "prefixes":
                self._take_rule(part, rest)
            case _:
                return self._stand_in(keys)
        return True

    def _take_rule(self, part: str, rest: list[Any]) -> None:
        """Take out a rule of recognition; a description is none without its sentence."""
        rules = self.data["recognition"]
        if rest and isinstance(rules[part], dict):
            rules[part].pop(rest[0], None)
            return
        for each in ("otherwise", "description", part):
            rules.pop(each, None)

    def _take_job(self, number: int) -> None:
        job = self.data["jobs"].pop(number)
        del self._numbers[number]
        slug = job.get("slug") if isinstance(job, dict) else None
        for each in self._jobs():
            if each.get("chain_of") == slug:
                del each["chain_of"]

    def _take_table(self, name: str) -> None:
        table = self._at(("tables", name))
        columns = table.get("columns") if isinstance(table, dict) else None
        for column in list(columns) if isinstance(columns, dict) else ():
            self._take_column(name, column)
        del self.data["tables"][name]
        self._has_lost_tables = True

    def _take_column(self, table: str, key: str) -> None:
        """Take out a column, those that share its OID, and its mention in jobs."""
        self.data["tables"][table]["columns"].pop(key, None)
        others = [(name, columns) for name, columns in self._tables() if key in columns]
        if others:
            return
        self._columns.add(key)
        for name, columns in self._tables():
            for each in [
                each for each, rule in columns.items() if isinstance(rule, dict) and rule.get("shares") == key
            ]:
                self._take_column(name, each)
        for job in list(self._jobs()):
            if isinstance(job.get("columns"), list) and key in job["columns"]:
                job["columns"] = [each for each in job["columns"] if each != key]
                if not job["columns"]:
                    self._take_job(self.data["jobs"].index(job))

    def _stand_in(self, keys: list[Any]) -> bool:
        """Replace the smallest part that has a stand-in; False if there is none."""
        if keys == ["tables"] and isinstance(self.data.get("tables"), dict):
            return False
        self._has_lost_indexes |= keys == ["indexes"]
        target: Any = self.data
        stand_in: Any = _STAND_IN
        for key in keys:
            if not isinstance(stand_in, Mapping) or key not in stand_in:
                return False
            if key is keys[-1] or not isinstance(target.get(key), dict):
                target[key] = deepcopy(stand_in[key])
                return True
            target, stand_in = target[key], stand_in[key]
        return False

    def _keys(self, path: str) -> list[Any]:
        """Split a path into keys and numbers; the keys of columns contain dots themselves."""
        found: list[Any] = []
        data: Any = self.data
        while path:
            if path.startswith("*."):
                path = self._table_of(path.removeprefix("*.columns.")) + path[1:]
            if number := re.match(r"\[(\d+)\]\.?", path):
                key: Any = int(number[1])
                path = path[number.end() :]
                data = data[key] if isinstance(data, list) and key < len(data) else None
            else:
                key, path = _split(path, data)
                data = data.get(key) if isinstance(data, dict) else None
            found.append(key)
        return found

    def _table_of(self, path: str) -> str:
        return next((name for name, columns in self._tables() if _split(path, columns)[0] in columns), "")

    def _at(self, keys: Any) -> Any:
        data: Any = self.data
        for key in keys:
            data = data[key]
        return data

    def _jobs(self) -> Iterator[dict[str, Any]]:
        jobs = self.data.get("jobs")
        return (job for job in (jobs if isinstance(jobs, list) else ()) if isinstance(job, dict))

    def _tables(self) -> Iterator[tuple[str, dict[str, Any]]]:
        tables = self.data.get("tables")
        for name, table in list(tables.items()) if isinstance(tables, dict) else ():
            if isinstance(table, dict) and isinstance(table.get("columns"), dict):
                yield name, table["columns"]


def _split(path: str, data: Any) -> tuple[Any, str]:
    """Return the first key of a path, the longest that the data has, and what follows it."""
    known = [
        key for key in (data if isinstance(data, dict) else ()) if re.match(rf"{re.escape(str(key))}([.\[]|$)", path)
    ]
    key = max(known, key=lambda each: len(str(each)), default=None)
    if key is None:
        key = re.split(r"[.\[]", path, maxsplit=1)[0]
    rest = path[len(str(key)) :]
    return key, rest.removeprefix(".")


# (index suffix, tag, value), as a walk returns them.
SentRow = tuple[Oid, int, Value]

# Fewer equal values can be chance.
CONSTANT_ROWS = 4
# As many different ones as fit a line.
MOST_EXAMPLES = 8


class Suspicion(StrEnum):
    NO_ROWS = "no_rows"
    NO_PLACE = "no_place"
    WRONG_TYPE = "wrong_type"
    UNKNOWN_ENUM = "unknown_enum"
    OUT_OF_RANGE = "out_of_range"
    MALFORMED = "malformed"
    ONLY_SENTINELS = "only_sentinels"
    CONSTANT = "constant"


@dataclass(frozen=True, slots=True)
class Doubt:
    """One suspicion, in how many rows, and the raw values that caused it."""

    suspicion: Suspicion
    rows: int
    examples: tuple[Value, ...] = ()


@dataclass(frozen=True, slots=True)
class SentExample:
    """A row of the column: the first that has a value in a place, else the first."""

    suffix: Oid
    tag: int
    raw: Value
    value: Typed | None
    place: Place | None


@dataclass(frozen=True, slots=True)
class ColumnVerdict:
    column: Column
    rows: int
    example: SentExample | None
    doubts: tuple[Doubt, ...]


_BY_REASON = {
    Reject.WRONG_TYPE: Suspicion.WRONG_TYPE,
    Reject.UNKNOWN_ENUM: Suspicion.UNKNOWN_ENUM,
    Reject.OUT_OF_RANGE: Suspicion.OUT_OF_RANGE,
    Reject.MALFORMED: Suspicion.MALFORMED,
}


def judge_column(column: Column, rows: Sequence[SentRow]) -> ColumnVerdict:
    """Decode the rows and name what is odd about the outcome."""
    if not rows:
        return ColumnVerdict(column, 0, None, (Doubt(Suspicion.NO_ROWS, 0),))
    examples: list[SentExample] = []
    rejected: dict[Reject, Counter[Value]] = {}
    for suffix, tag, raw in rows:
        value, reason = column.decode(tag, raw)
        examples.append(SentExample(suffix, tag, raw, value, column.index.decode(suffix)))
        if reason is not None:
            rejected.setdefault(reason, Counter())[raw] += 1
    doubts = []
    if unplaced := sum(example.place is None for example in examples):
        doubts.append(Doubt(Suspicion.NO_PLACE, unplaced))
    for reason, suspicion in _BY_REASON.items():
        if counted := rejected.get(reason):
            doubts.append(
                Doubt(suspicion, counted.total(), tuple(raw for raw, _ in counted.most_common(MOST_EXAMPLES)))
            )
    if (sentinels := rejected.get(Reject.SENTINEL)) and sentinels.total() == len(rows):
        doubts.append(Doubt(Suspicion.ONLY_SENTINELS, len(rows), tuple(sentinels)[:MOST_EXAMPLES]))
    if _is_constant(column, examples):
        doubts.append(Doubt(Suspicion.CONSTANT, len(rows), (examples[0].raw,)))
    return ColumnVerdict(column, len(rows), max(examples, key=_relevance), tuple(doubts))


def _is_constant(column: Column, examples: Sequence[SentExample]) -> bool:
    """Tell whether what should differ does not: all ONUs may be enabled or of one model, but not equally bright."""
    values = [example.value for example in examples if example.value is not None]
    is_expected_to_differ = column.key in IDENTITY or (column.rule.decoder.is_numeric and not column.rule.words)
    return is_expected_to_differ and len(values) >= CONSTANT_ROWS and len(set(values)) == 1


def _relevance(example: SentExample) -> int:
    return 2 * (example.value is not None) + (example.place is not None)
