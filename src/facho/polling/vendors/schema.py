"""Strict reading of a definition file: every key is asked for by name and type, and what is left over is an error."""

import math
import re
from collections.abc import Hashable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import Any, TypeVar

import yaml

from facho.polling.snmp.ber import Oid
from facho.polling.vendors.decoders import parse_oid

T = TypeVar("T")
E = TypeVar("E", bound=StrEnum)

# A definition is ten kilobytes and six levels deep; what goes far beyond was not written to be one.
MAX_BYTES = 512 * 1024
MAX_DEPTH = 16
MAX_VALUES = 50_000
MAX_LETTERS = 500

_KEY = re.compile(r"[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)*")


class DefinitionError(ValueError):
    """An invalid definition file: names the file, the path of keys and the problem."""

    code = "definition_invalid"

    def __init__(self, source: str, path: str, problem: str) -> None:
        if len(problem) > MAX_LETTERS:
            problem = f"{problem[: MAX_LETTERS - 1]}…"
        super().__init__(f"{source}: {path or 'the file'}: {problem}")
        self.source = source
        self.path = path
        self.problem = problem


class _StrictLoader(yaml.SafeLoader):
    """Loads plain data: no duplicate keys, and a limit on values, since YAML references can expand to gigabytes."""

    def __init__(self, stream: str) -> None:
        super().__init__(stream)
        self._depth = 0
        # Height and number of values of each node that is complete, with what its references stand for.
        self._sizes: dict[yaml.Node, tuple[int, int]] = {}

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        event = self.peek_event()  # type: ignore[no-untyped-call]
        line = event.start_mark.line + 1
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise _too_much(line, f"is nested deeper than {MAX_DEPTH} levels")
        node = super().compose_node(parent, index)
        if node is not None and node not in self._sizes:
            if isinstance(event, yaml.AliasEvent):
                raise _too_much(line, "refers to itself")
            self._sizes[node] = self._measure(node, line)
        self._depth -= 1
        return node

    def _measure(self, node: yaml.Node, line: int) -> tuple[int, int]:
        inner = [each for pair in node.value for each in pair] if isinstance(node, yaml.MappingNode) else node.value
        parts = [] if isinstance(node, yaml.ScalarNode) else [self._sizes[each] for each in inner]
        height, values = 1 + max((part[0] for part in parts), default=0), 1 + sum(part[1] for part in parts)
        if height > MAX_DEPTH or values > MAX_VALUES:
            raise _too_much(line, f"holds more than {MAX_VALUES} values or {MAX_DEPTH} levels, references written out")
        return height, values

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[object] = set()
        for key_node, _value in node.value:
            # Compared as written; merge keys and keys that are lists would make the files a language.
            key = key_node.value
            if not isinstance(key, str) or key == "<<" or key in seen:
                problem = f"key {key!r} in line {key_node.start_mark.line + 1} appears twice or is not a plain key"
                raise yaml.constructor.ConstructorError(None, None, problem)
            seen.add(key)
        return super().construct_mapping(node, deep)


class _FastLoader(_StrictLoader):
    """Parses with libyaml, four times as fast."""

    def __init__(self, stream: str) -> None:
        super().__init__("")
        reader = yaml.CSafeLoader(stream)
        for name in ("check_event", "peek_event", "get_event"):
            setattr(self, name, getattr(reader, name))


def _too_much(line: int, problem: str) -> yaml.YAMLError:
    return yaml.composer.ComposerError(None, None, f"line {line} {problem}")


def parse(text: str, source: str) -> "Section":
    try:
        data = _load(text)
    except yaml.YAMLError as error:
        raise DefinitionError(source, "", " ".join(str(error).split())) from error
    except ValueError as error:  # a date or a number that there is not
        raise DefinitionError(source, "", f"holds a value that cannot be read: {error}") from None
    return Section.of(data, source, "")


def _load(text: str) -> object:
    if yaml.__with_libyaml__:
        # Python's reader says more about what is wrong, so it has the last word.
        with suppress(yaml.YAMLError, ValueError):
            return yaml.load(text, Loader=_FastLoader)  # noqa: S506 - derived from the safe loader
    return yaml.load(text, Loader=_StrictLoader)  # noqa: S506 - derived from the safe loader


@dataclass(slots=True)
class Section:
    """One mapping of the file. Read its keys, then `close` it, which reports unknown ones."""

    data: dict[Any, Any]
    source: str
    path: str

    @classmethod
    def of(cls, data: object, source: str, path: str) -> "Section":
        if not isinstance(data, dict):
            raise DefinitionError(source, path, "must be a mapping")
        return cls(dict(data), source, path)

    def error(self, key: object, problem: str) -> DefinitionError:
        return DefinitionError(self.source, self.at(key), problem)

    def at(self, key: object) -> str:
        return f"{self.path}.{key}" if self.path else str(key)

    def close(self) -> None:
        for key in self.data:
            raise self.error(key, "unknown key")

    def has(self, key: str) -> bool:
        return key in self.data

    def take(self, key: str, expected: type[T], default: T | None = None) -> T:
        if key not in self.data:
            if default is None:
                raise self.error(key, "is missing")
            return default
        return self._checked(key, self.data.pop(key), expected)

    def _checked(self, key: object, value: object, expected: type[T]) -> T:
        # bool is an int in Python; in a definition `yes` for a number is a mistake.
        if not isinstance(value, expected) or (isinstance(value, bool) and expected is not bool):
            raise self.error(key, f"must be {_NAMES.get(expected, expected.__name__)}, not {value!r}")
        return value

    def text(self, key: str, default: str | None = None) -> str:
        value = self.take(key, str, default).strip()
        if not value and default is None:
            raise self.error(key, "must not be empty")
        return value

    def integer(self, key: str, default: int | None = None, *, low: int = 0, high: int = 0xFFFF_FFFF) -> int:
        value = self.take(key, int, default)
        if not low <= value <= high:
            raise self.error(key, f"must be between {low} and {high}, not {value}")
        return value

    def optional_integer(self, key: str, *, high: int = 0xFFFF_FFFF) -> int | None:
        return self.integer(key, high=high) if self.has(key) else None

    def fraction(self, key: str, default: int) -> Fraction:
        """Read a decimal exactly: 0.01 is one hundredth."""
        if not self.has(key):
            return Fraction(default)
        value = self.data.pop(key)
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise self.error(key, f"must be a number, not {value!r}")
        return Fraction(str(value))

    def word(self, key: str, vocabulary: type[E], default: E | None = None) -> E:
        if default is not None and not self.has(key):
            return default
        return self.to_word(key, self.text(key), vocabulary)

    def to_word(self, key: object, value: object, vocabulary: type[E]) -> E:
        try:
            return vocabulary(str(value))
        except ValueError:
            raise self.error(key, f"{value!r} is not one of {', '.join(vocabulary)}") from None

    def oid(self, key: str) -> Oid:
        return self.to_oid(key, self.text(key))

    def to_oid(self, key: object, value: object) -> Oid:
        text = self._checked(key, value, str)
        with self.blaming(key):
            return parse_oid(text)

    def items(self, key: str, expected: type[T], *, required: bool = True) -> tuple[T, ...]:
        if not required and not self.has(key):
            return ()
        values = self.take(key, list)
        found = tuple(self._checked(f"{key}[{at}]", value, expected) for at, value in enumerate(values))
        plain = [value for value in found if not isinstance(value, dict | list)]
        if len(set(plain)) != len(plain):
            raise self.error(key, "has the same entry twice")
        return found

    def listed(self, key: str, *, required: bool = True) -> list["Section"]:
        entries = enumerate(self.items(key, dict, required=required))
        return [Section.of(entry, self.source, self.at(f"{key}[{at}]")) for at, entry in entries]

    @contextmanager
    def blaming(self, key: object) -> Iterator[None]:
        """Report what building a value raises as a fault of this key."""
        try:
            yield
        except (ValueError, IndexError) as error:
            raise self.error(key, str(error)) from None

    def section(self, key: str) -> "Section":
        return Section.of(self.take(key, dict), self.source, self.at(key))

    def optional_section(self, key: str) -> "Section":
        return self.section(key) if self.has(key) else Section({}, self.source, self.at(key))

    def sections(self) -> Iterator[tuple[str, "Section"]]:
        """Iterate over all keys of this mapping of mappings; they must look like keys."""
        for key in list(self.data):
            if not isinstance(key, str) or not _KEY.fullmatch(key):
                raise self.error(key, "is not a valid name: lower case, digits, _ and dots")
            yield key, self.section(key)

    def pairs(self) -> Mapping[Any, Any]:
        data, self.data = self.data, {}
        return data


_NAMES: dict[type, str] = {str: "text", int: "a whole number", bool: "true or false", list: "a list", dict: "a mapping"}
