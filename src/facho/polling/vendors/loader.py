"""Loads the definition files into values; anything that is not exactly right stops with file and key path."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from types import MappingProxyType

from facho.polling.domain.execution_state import QueryType
from facho.polling.snmp.ber import Oid
from facho.polling.vendors.column import Column, ColumnReader, RowRule
from facho.polling.vendors.definition import (
    IDENTITY,
    MAC,
    CostClass,
    Definition,
    Job,
    Polling,
    Recognition,
    Refusal,
    Table,
    oid_of,
)
from facho.polling.vendors.index import (
    STEP_BITS,
    STEP_SHIFT,
    BitField,
    Index,
    LearnedIndex,
    NamedPortsIndex,
    Place,
    SpelledPart,
    SteppedIndex,
    build_either,
    build_index,
    build_learned_index,
    build_spelled,
    count_from,
    name_ports,
    parts_of,
)
from facho.polling.vendors.notifications import read_notifications
from facho.polling.vendors.schema import MAX_BYTES, DefinitionError, Section, parse
from facho.polling.vendors.vocabulary import Confidence, Cost, Scope

AUTOFIND_SERIAL = "autofind.serial"
_MAX_INTERVAL_SECONDS = 7 * 86_400
# Families count from 0, 1 or 2.
_MOST_ADDED = 16


# The operator's folders: a definition there is added, or replaces the built-in one of the same key.
_own_folders: list[Path] = []


def use_own_definitions(folder: Path) -> None:
    """Also read the operator's definitions from now on; a missing folder holds none."""
    if folder not in _own_folders:
        _own_folders.append(folder)
        load_definitions.cache_clear()


class _Definitions(Mapping[str, Definition]):
    """Builds each definition when it is first asked for: most processes need one vendor, and all take 0.2 s of CPU."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts = texts
        self._built: dict[str, Definition] = {}

    def __getitem__(self, key: str) -> Definition:
        if key not in self._built:
            built = read_definition(self._texts[key], f"{key}.yaml")
            check_file_name(built.key, f"{key}.yaml")
            self._built[key] = built
        return self._built[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._texts)

    def __len__(self) -> int:
        return len(self._texts)


@lru_cache(maxsize=1)
def load_definitions() -> Mapping[str, Definition]:
    """Return all definitions by key; reads the files once per process: an upgrade may replace them under it.

    DefinitionError if one of the operator's own cannot be used.
    """
    own = {key: text for folder in _own_folders if folder.is_dir() for key, text in _read_texts(folder).items()}
    found = _Definitions(_read_texts(files("facho.polling.vendors") / "definitions") | own)
    for key in own:
        found[key]
    return found


def _read_texts(folder: Traversable) -> dict[str, str]:
    entries = sorted(folder.iterdir(), key=lambda entry: entry.name)
    return {entry.name.removesuffix(".yaml"): read_text(entry) for entry in entries if entry.name.endswith(".yaml")}


def check_file_name(key: str, name: str) -> None:
    """Raise DefinitionError unless the file is named after the key."""
    if name != f"{key}.yaml":
        raise DefinitionError(name, "key", f"{key!r} does not match the name of the file")


def read_text(file: Traversable) -> str:
    """Read a definition file; DefinitionError if it cannot be read or cannot be one."""
    try:
        with file.open("rb") as opened:
            content = opened.read(MAX_BYTES + 1)
    except OSError as error:
        raise DefinitionError(file.name, "", f"cannot be read: {error.strerror}") from error
    if len(content) > MAX_BYTES:
        raise DefinitionError(file.name, "", f"is larger than {MAX_BYTES // 1024} kB, which no definition is")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        raise DefinitionError(file.name, "", "is not UTF-8 text") from None


def definition(key: str) -> Definition:
    return load_definitions()[key]


def read_definition(text: str, source: str) -> Definition:
    """Build a definition from its text; `source` is the name in error messages."""
    return build_definition(parse(text, source))


def build_definition(top: Section) -> Definition:
    """Build a definition from the data of its file, which stays as it is; DefinitionError at the first fault."""
    confidence = top.word("confidence", Confidence)
    indexes = {name: read_index(name, entry) for name, entry in top.section("indexes").sections()}
    tables = tuple(_read_table(name, entry, indexes, confidence) for name, entry in top.section("tables").sections())
    columns = _collect_columns(top, tables)
    for index in indexes.values():
        if isinstance(index, LearnedIndex | NamedPortsIndex) and index.learned_from not in columns:
            key = "learned_from" if isinstance(index, LearnedIndex) else "ports_named_by"
            raise top.error(f"indexes.{index.name}.{key}", "is no column of this file")
    notifications = top.optional_section("notifications")
    further = {name: read_index(name, entry) for name, entry in notifications.optional_section("indexes").sections()}
    section = top.section("polling")
    classes = section.section("classes")
    costs = {}
    for cost in Cost:
        each = classes.section(cost)
        timeout, retries = each.integer("timeout_seconds", low=1, high=120), each.integer("retries", high=10)
        interval = each.integer("min_interval_seconds", low=1, high=_MAX_INTERVAL_SECONDS)
        costs[cost] = CostClass(timeout, retries, interval)
        each.close()
    polling = Polling(
        # 0 repetitions hang real agents.
        max_repetitions=section.integer("max_repetitions", low=1, high=100),
        max_varbinds=section.integer("max_varbinds", low=1, high=100),
        in_flight=section.integer("in_flight", 1, low=1, high=8),
        classes=MappingProxyType(costs),
    )
    classes.close()
    section.close()
    loaded = Definition(
        key=top.text("key"),
        brand=top.text("brand"),
        title=top.text("title"),
        confidence=confidence,
        notes=top.items("notes", str, required=False),
        recognition=_read_recognition(top.section("recognition")),
        indexes=MappingProxyType(indexes),
        tables=tables,
        columns=MappingProxyType(columns),
        polling=polling,
        jobs=(),
        onu_indexes=MappingProxyType(_onu_indexes(top, indexes, tables)),
        row_rules=MappingProxyType(_row_rules(top, columns)),
        notifications=read_notifications(notifications, indexes | further, confidence),
    )
    jobs = _read_jobs(top, loaded)
    top.close()
    return replace(loaded, jobs=jobs)


def _read_recognition(section: Section) -> Recognition:
    prefixes = tuple(
        section.to_oid(f"prefixes[{at}]", prefix) for at, prefix in enumerate(section.items("prefixes", str))
    )
    pattern = section.text("description", "")
    tables = tuple(
        section.to_oid(f"tables[{at}]", table) for at, table in enumerate(section.items("tables", str, required=False))
    )
    otherwise = section.text("otherwise") if pattern or tables else ""
    try:
        description = re.compile(pattern) if pattern else None
    except re.error as error:
        raise section.error("description", f"is not a regular expression: {error}") from None
    models = _read_oid_map(section.optional_section("models"))
    refused = _read_oid_map(section.optional_section("refused"))
    section.close()
    return Recognition(prefixes, models, refused, description, tables, otherwise)


def _read_oid_map(section: Section) -> Mapping[Oid, str]:
    keys = {section.to_oid(key, key): key for key in list(section.data)}
    return MappingProxyType({oid: section.text(key) for oid, key in keys.items()})


def read_index(name: str, section: Section) -> Index:
    scope = section.word("scope", Scope)
    if section.has("learned_from"):
        return _read_learned_index(name, scope, section)
    if section.has("either"):
        written = enumerate(section.items("either", list))
        section.close()
        formulas = [_read_formula(name, scope, section, f"either[{at}]", each) for at, each in written]
        with section.blaming("either"):
            return build_either(name, scope, formulas)
    if any(isinstance(each, dict) and "text" in each for each in section.data.get("components", ())):
        return _read_spelled(name, scope, section)
    base = section.integer("base", 0, high=_MOST_ADDED)
    formula = _read_formula(name, scope, section, "components", section.items("components", object))
    named_by = section.text("ports_named_by", "")
    names = section.items("names", str, required=bool(named_by)) if named_by else ()
    section.close()
    if named_by:
        with section.blaming("names"):
            return name_ports(formula, named_by, names)
    with section.blaming("base"):
        return count_from(formula, base) if base else formula


def _read_spelled(name: str, scope: Scope, section: Section) -> Index:
    """Read components of which some are texts: `{field: slot, text: sized}`, or `rest` for one without its length."""
    if scope in (Scope.ONU, Scope.PON, Scope.AUTOFIND):
        raise section.error("components", "only rows of the OLT itself can be told by texts")
    parts = []
    for at, component in enumerate(section.items("components", object)):
        written = {"field": component} if isinstance(component, str) else component
        entry = Section.of(written, section.source, section.at(f"components[{at}]"))
        field, text = entry.text("field"), entry.text("text", "number")
        if field not in Place._fields or text not in ("number", "sized", "rest"):
            raise entry.error("field", f"must be one of {', '.join(Place._fields)}, as number, sized or rest")
        entry.close()
        parts.append(SpelledPart(field, is_text=text != "number", is_rest=text == "rest"))
    section.close()
    with section.blaming("components"):
        return build_spelled(name, scope, parts)


def _read_formula(name: str, scope: Scope, section: Section, key: str, written: Sequence[object]) -> Index:
    components, steps = [], dict[int, int]()
    for at, component in enumerate(written):
        path = section.at(f"{key}[{at}]")
        fields = {path: component}
        if isinstance(component, list):
            fields = {f"{path}[{number}]": entry for number, entry in enumerate(component)}
        found = []
        for where, entry in fields.items():
            # A bare name or number stands for a whole sub-identifier.
            is_bare = isinstance(entry, str | int)
            whole = {"field" if isinstance(entry, str) else "const": entry} if is_bare else entry
            field = Section.of(whole, section.source, where)
            if field.has("step"):
                steps[at] = field.integer("step", low=2, high=1 << STEP_SHIFT)
                field.data |= {"shift": STEP_SHIFT, "bits": STEP_BITS}
            found.append(_read_field(field))
        components.append(found)
    if steps.keys() - {0}:
        raise section.error(key, "only the first sub-identifier can count in steps")
    with section.blaming(key):
        formula = build_index(name, scope, components)
    return SteppedIndex(*parts_of(formula), step=steps[0]) if steps else formula


def _read_learned_index(name: str, scope: Scope, section: Section) -> LearnedIndex:
    source, length = section.text("learned_from"), section.integer("length", 1, low=1, high=64)
    forms = section.items("names", str, required=False)
    first_port = section.integer("first_port", 1, high=1)
    section.close()
    with section.blaming("names"):
        return build_learned_index(name, scope, length, source, forms, first_port=first_port)


def _read_field(section: Section) -> BitField:
    shift = section.integer("shift", 0, high=31)
    bits = section.integer("bits", 32 - shift, low=1, high=32)
    if section.has("const") or section.has("any"):
        is_any = section.has("any")
        found = BitField(None, shift, bits, const=section.integer("any" if is_any else "const"), is_any=is_any)
    else:
        name = section.text("field")
        if name not in Place._fields:
            raise section.error("field", f"{name!r} is not one of {', '.join(Place._fields)}")
        low, high = section.optional_integer("min"), section.optional_integer("max")
        found = BitField(
            name, shift, bits, section.integer("add", 0, low=-_MOST_ADDED, high=_MOST_ADDED), low=low, high=high
        )
    section.close()
    return found


def _read_table(name: str, section: Section, indexes: Mapping[str, Index], confidence: Confidence) -> Table:
    oid = section.oid("oid")
    index = indexes.get(section.text("index"))
    if index is None:
        raise section.error("index", "names no index of this file")
    reader = ColumnReader(oid, index, section.word("cost", Cost), section.word("confidence", Confidence, confidence))
    columns = tuple(reader.read(key, entry) for key, entry in section.section("columns").sections())
    guard = section.text("guard", "")
    if guard:
        columns = tuple(
            column if column.key == guard else replace(column, row_rule=replace(column.row_rule, guard=guard))
            for column in columns
        )
    section.close()
    return Table(name, oid, index, columns)


def _collect_columns(top: Section, tables: tuple[Table, ...]) -> dict[str, Column]:
    columns: dict[str, Column] = {}
    for table in tables:
        for column in table.columns:
            if column.key in columns:
                raise top.error(f"tables.{table.name}.columns.{column.key}", "is defined twice")
            columns[column.key] = column
    # Interfaces of all kinds share a standard column; what a row is about follows from its index.
    owners: dict[tuple[Oid, Scope], str] = {}
    for column in (each for each in columns.values() if each.shares is None):
        owner = owners.setdefault((column.oid, column.index.scope), column.key)
        if owner != column.key:
            raise top.error(f"tables.*.columns.{column.key}", f"has the OID of {owner}: say `shares`")
    if AUTOFIND_SERIAL not in columns and any(column.index.scope is Scope.AUTOFIND for column in columns.values()):
        raise top.error("tables", f"ONUs that wait are listed by their serials: {AUTOFIND_SERIAL} is missing")
    if MAC in columns and columns[MAC].rule.decoder.name != "mac":
        raise top.error(f"tables.*.columns.{MAC}.decoder", "must be mac: ONUs are told apart by one spelling")
    for column in columns.values():
        if column.shares is not None and owners.get((column.oid, column.index.scope)) != column.shares:
            raise top.error(f"tables.*.columns.{column.key}.shares", f"{column.shares} has not the same OID")
    return columns


def _row_rules(top: Section, columns: Mapping[str, Column]) -> dict[str, RowRule]:
    rules = {key: column.row_rule for key, column in columns.items() if not column.row_rule.is_empty}
    for key, rule in rules.items():
        for named in (*filter(None, [rule.fills]), *rule.needed):
            if named not in columns:
                raise top.error(f"tables.*.columns.{key}", f"{named} is no column of this file")
            if columns[named].index.scope is not columns[key].index.scope:
                raise top.error(f"tables.*.columns.{key}", f"{named} is about something else")
    return rules


def _onu_indexes(top: Section, indexes: Mapping[str, Index], tables: tuple[Table, ...]) -> dict[int, Index]:
    used = {table.index.name for table in tables}
    found: dict[int, Index] = {}
    for index in indexes.values():
        if index.name not in used:
            raise top.error(f"indexes.{index.name}", "is used by no table")
        if index.scope is not Scope.ONU:
            continue
        other = found.get(index.length)
        if other is not None and not _are_apart(other, index):
            raise top.error(f"indexes.{index.name}", "is as long as another ONU index: they could not be told apart")
        found[index.length] = index if other is None else build_either(other.name, Scope.ONU, [other, index])
    return found


def _are_apart(one: Index, other: Index) -> bool:
    """Tell whether the rows of one index are refused by the other, by the first and the last place of each."""
    if isinstance(one, LearnedIndex) or isinstance(other, LearnedIndex):
        return False
    ends = [Place(**{name: bits.values[at] for name, bits in one.fields.items()}) for at in (0, -1)]
    others = [Place(**{name: bits.values[at] for name, bits in other.fields.items()}) for at in (0, -1)]
    return not any(map(other.decode, map(one.encode, ends))) and not any(map(one.decode, map(other.encode, others)))


def _read_jobs(top: Section, loaded: Definition) -> tuple[Job, ...]:
    jobs: dict[str, Job] = {}
    for section in top.listed("jobs"):
        job = _read_job(section, loaded)
        if job.slug in jobs:
            raise section.error("slug", f"{job.slug!r} appears twice")
        _check_chain(section, job, jobs, loaded)
        jobs[job.slug] = job
    return tuple(jobs.values())


def _read_job(section: Section, loaded: Definition) -> Job:
    job = Job(
        slug=section.text("slug"),
        name=section.text("name"),
        query_type=section.word("query_type", QueryType),
        interval_seconds=section.integer("interval_seconds", low=1, high=_MAX_INTERVAL_SECONDS),
        columns=section.items("columns", str),
        chain_of=section.text("chain_of", "") or None,
        priority=section.optional_integer("priority", high=100),
    )
    section.close()
    for key in job.columns:
        if key not in loaded.columns or loaded.columns[key].shares:
            raise section.error("columns", f"{key!r} is no column of this file that can be read by itself")
    if job.query_type is QueryType.DISCOVERY and not set(job.columns) <= set(IDENTITY):
        raise section.error("columns", f"a discovery reads {', '.join(IDENTITY)} and nothing else")
    if not job.columns:
        raise section.error("columns", "must not be empty")
    if job.interval_seconds < loaded.safe_interval_seconds(job.columns):
        raise section.error("interval_seconds", "is below the safe minimum of its columns")
    return job


def _check_chain(section: Section, job: Job, earlier: Mapping[str, Job], loaded: Definition) -> None:
    if job.chain_of is None:
        return
    master = earlier.get(job.chain_of)
    if master is None or master.chain_of is not None:
        raise section.error("chain_of", f"{job.chain_of!r} is no earlier master of this file")
    if master.interval_seconds != job.interval_seconds:
        raise section.error("interval_seconds", "differs from the master's, at whose pace a chain runs")
    if loaded.cost_of(job.columns) is Cost.LIVE:
        raise section.error("chain_of", "a job on live columns is a master, never a chain member")


GENERIC_KEY = "generic"


def recognise(sys_object_id: Oid | str, sys_descr: str) -> Definition | Refusal | None:
    """Return the definition, a refusal for look-alikes, or the generic one; None if nothing was reported."""
    refusal: Refusal | None = None
    for candidate in load_definitions().values():
        verdict = candidate.recognise(sys_object_id, sys_descr)
        if isinstance(verdict, Definition):
            return verdict
        refusal = refusal or verdict
    if refusal or not oid_of(sys_object_id):
        return refusal
    return load_definitions()[GENERIC_KEY]


def tables_to_ask(sys_object_id: Oid | str) -> tuple[Oid, ...]:
    """Return the tables that would show which family a device is of; empty if its id leaves no choice."""
    rivals = [each for each in load_definitions().values() if each.may_be(sys_object_id)]
    return tuple(dict.fromkeys(table for each in rivals for table in each.recognition.tables))


def recognise_by_tables(
    verdict: Definition | Refusal | None, sys_object_id: Oid | str, answering: Collection[Oid]
) -> Definition | Refusal | None:
    """Return the family whose tables have rows: the one that the device names if its own have, else another one."""
    rivals = [each for each in load_definitions().values() if each.may_be(sys_object_id)]
    shown = [each for each in rivals if not set(answering).isdisjoint(each.recognition.tables)]
    return verdict if not shown or verdict in shown else shown[0]
