"""Loads the definition files into values; anything that is not exactly right stops with file and key path."""

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from types import MappingProxyType

from facho.polling.domain.task_type import QueryType
from facho.polling.snmp.ber import Oid
from facho.polling.vendors.column import Column
from facho.polling.vendors.column_reader import ColumnReader
from facho.polling.vendors.definition import IDENTITY, MAC, CostClass, Definition, Job, Polling, Recognition, Table
from facho.polling.vendors.index import BitField, Index, Place, build_index
from facho.polling.vendors.learned_index import LearnedIndex, build_learned_index
from facho.polling.vendors.schema import DefinitionError, Section, parse
from facho.polling.vendors.vocabulary import Confidence, Cost, Scope

AUTOFIND_SERIAL = "autofind.serial"
_MAX_INTERVAL_SECONDS = 7 * 86_400
# Families count from 0, 1 or 2.
_MOST_ADDED = 16


# Folders of the operator's own: a definition there is added, or takes the place of ours of the same key.
_own_folders: list[Path] = []


def use_own_definitions(folder: Path) -> None:
    """Read the operator's definitions too, from now on; a folder that does not exist holds none."""
    if folder not in _own_folders:
        _own_folders.append(folder)
        load_definitions.cache_clear()


@lru_cache(maxsize=1)
def load_definitions() -> Mapping[str, Definition]:
    """Return all definitions by key; reads the files once in the life of a process."""
    found = _read_folder(files("facho.polling.vendors") / "definitions")
    for folder in _own_folders:
        found |= _read_folder(folder) if folder.is_dir() else {}
    return MappingProxyType(found)


def _read_folder(folder: Traversable) -> dict[str, Definition]:
    found: dict[str, Definition] = {}
    for file in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if not file.name.endswith(".yaml"):
            continue
        loaded = read_definition(file.read_text("utf-8"), file.name)
        if file.name != f"{loaded.key}.yaml":
            raise DefinitionError(file.name, "key", f"{loaded.key!r} does not match the name of the file")
        found[loaded.key] = loaded
    return found


def definition(key: str) -> Definition:
    """Return the definition of a key; KeyError when there is none."""
    return load_definitions()[key]


def read_definition(text: str, source: str) -> Definition:
    """Build a definition from the text of its file; `source` is the name that errors carry."""
    top = parse(text, source)
    confidence = top.word("confidence", Confidence)
    indexes = _read_indexes(top.section("indexes"))
    tables = _read_tables(top.section("tables"), indexes, confidence)
    columns = _collect_columns(top, tables)
    for index in indexes.values():
        if isinstance(index, LearnedIndex) and index.learned_from not in columns:
            raise top.error(f"indexes.{index.name}.learned_from", "is no column of this file")
    polling = _read_polling(top.section("polling"))
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
    )
    jobs = _read_jobs(top, loaded)
    top.close()
    return replace(loaded, jobs=jobs)


def _read_recognition(section: Section) -> Recognition:
    prefixes = tuple(
        section.to_oid(f"prefixes[{at}]", prefix) for at, prefix in enumerate(section.items("prefixes", str))
    )
    pattern = section.text("description", "")
    otherwise = section.text("otherwise") if pattern else ""
    try:
        description = re.compile(pattern) if pattern else None
    except re.error as error:
        raise section.error("description", f"is not a regular expression: {error}") from None
    models = _read_oid_map(section.optional_section("models"))
    refused = _read_oid_map(section.optional_section("refused"))
    section.close()
    return Recognition(prefixes, models, refused, description, otherwise)


def _read_oid_map(section: Section) -> Mapping[Oid, str]:
    keys = {section.to_oid(key, key): key for key in list(section.data)}
    return MappingProxyType({oid: section.text(key) for oid, key in keys.items()})


def _read_indexes(section: Section) -> dict[str, Index]:
    return {name: read_index(name, entry) for name, entry in section.sections()}


def read_index(name: str, section: Section) -> Index:
    scope = section.word("scope", Scope)
    if section.has("learned_from"):
        return _read_learned_index(name, scope, section)
    components = []
    for at, component in enumerate(section.items("components", object)):
        path = f"components[{at}]"
        fields = component if isinstance(component, list) else [component]
        components.append(
            [_read_field(Section.of(_as_mapping(entry), section.source, section.at(path))) for entry in fields]
        )
    section.close()
    try:
        return build_index(name, scope, components)
    except ValueError as error:
        raise section.error("components", str(error)) from None


def _read_learned_index(name: str, scope: Scope, section: Section) -> LearnedIndex:
    source, length = section.text("learned_from"), section.integer("length", 1, low=1, high=64)
    forms = section.items("names", str, required=False)
    section.close()
    try:
        return build_learned_index(name, scope, length, source, forms)
    except ValueError as error:
        raise section.error("names", str(error)) from None


def _as_mapping(entry: object) -> object:
    """A bare name or number stands for a whole sub-identifier."""
    if isinstance(entry, str):
        return {"field": entry}
    return {"const": entry} if isinstance(entry, int) else entry


def _read_field(section: Section) -> BitField:
    shift = section.integer("shift", 0, high=31)
    bits = section.integer("bits", 32 - shift, low=1, high=32)
    if section.has("const"):
        found = BitField(None, shift, bits, const=section.integer("const"))
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


def _read_tables(section: Section, indexes: Mapping[str, Index], confidence: Confidence) -> tuple[Table, ...]:
    return tuple(_read_table(name, entry, indexes, confidence) for name, entry in section.sections())


def _read_table(name: str, section: Section, indexes: Mapping[str, Index], confidence: Confidence) -> Table:
    oid = section.oid("oid")
    index = indexes.get(section.text("index"))
    if index is None:
        raise section.error("index", "names no index of this file")
    reader = ColumnReader(oid, index, section.word("cost", Cost), section.word("confidence", Confidence, confidence))
    columns = tuple(reader.read(key, entry) for key, entry in section.section("columns").sections())
    section.close()
    return Table(name, oid, index, columns)


def _collect_columns(top: Section, tables: tuple[Table, ...]) -> dict[str, Column]:
    columns: dict[str, Column] = {}
    for table in tables:
        for column in table.columns:
            if column.key in columns:
                raise top.error(f"tables.{table.name}.columns.{column.key}", "is defined twice")
            columns[column.key] = column
    owners: dict[Oid, str] = {}
    for column in columns.values():
        if column.shares is None and owners.setdefault(column.oid, column.key) != column.key:
            raise top.error(f"tables.*.columns.{column.key}", f"has the OID of {owners[column.oid]}: say `shares`")
    if AUTOFIND_SERIAL not in columns and any(column.index.scope is Scope.AUTOFIND for column in columns.values()):
        raise top.error("tables", f"ONUs that wait are listed by their serials: {AUTOFIND_SERIAL} is missing")
    if MAC in columns and columns[MAC].rule.decoder.name != "mac":
        raise top.error(f"tables.*.columns.{MAC}.decoder", "must be mac: ONUs are told apart by one spelling")
    for column in columns.values():
        if column.shares is not None and owners.get(column.oid) != column.shares:
            raise top.error(f"tables.*.columns.{column.key}.shares", f"{column.shares} has not the same OID")
    return columns


def _onu_indexes(top: Section, indexes: Mapping[str, Index], tables: tuple[Table, ...]) -> dict[int, Index]:
    used = {table.index.name for table in tables}
    found: dict[int, Index] = {}
    for index in indexes.values():
        if index.name not in used:
            raise top.error(f"indexes.{index.name}", "is used by no table")
        if index.scope is Scope.ONU and found.setdefault(index.length, index) is not index:
            raise top.error(f"indexes.{index.name}", "is as long as another ONU index: they could not be told apart")
    return found


def _read_polling(section: Section) -> Polling:
    classes = section.section("classes")
    polling = Polling(
        # 0 repetitions hang real agents.
        max_repetitions=section.integer("max_repetitions", low=1, high=100),
        max_varbinds=section.integer("max_varbinds", low=1, high=100),
        in_flight=section.integer("in_flight", 1, low=1, high=8),
        classes=MappingProxyType({cost: _read_cost_class(classes.section(cost)) for cost in Cost}),
    )
    classes.close()
    section.close()
    return polling


def _read_cost_class(section: Section) -> CostClass:
    timeout, retries = section.integer("timeout_seconds", low=1, high=120), section.integer("retries", high=10)
    interval = section.integer("min_interval_seconds", low=1, high=_MAX_INTERVAL_SECONDS)
    section.close()
    return CostClass(timeout, retries, interval)


def _read_jobs(top: Section, loaded: Definition) -> tuple[Job, ...]:
    jobs: dict[str, Job] = {}
    for at, entry in enumerate(top.items("jobs", dict)):
        section = Section.of(entry, top.source, f"jobs[{at}]")
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
