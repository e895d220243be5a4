"""Strict reading of a definition file: every key is asked for by name and type, and what is left over is an error."""

import re
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import Any, TypeVar

import yaml

from facho.polling.snmp.ber import Oid
from facho.polling.vendors.decoders import parse_oid

T = TypeVar("T")
E = TypeVar("E", bound=StrEnum)

_KEY = re.compile(r"[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)*")


class DefinitionError(ValueError):
    """A definition file that cannot be used: names the file, the path of keys and what is wrong there."""

    code = "definition_invalid"

    def __init__(self, source: str, path: str, problem: str) -> None:
        super().__init__(f"{source}: {path or 'the file'}: {problem}")
        self.source = source
        self.path = path
        self.problem = problem


class _UniqueKeyLoader(yaml.SafeLoader):
    """YAML keeps the last of two equal keys without a word; here the second one is an error."""

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


def parse(text: str, source: str) -> "Section":
    """Parse a definition file into its top section."""
    try:
        data = yaml.load(text, Loader=_UniqueKeyLoader)  # noqa: S506 - derived from the safe loader
    except yaml.YAMLError as error:
        raise DefinitionError(source, "", " ".join(str(error).split())) from error
    return Section.of(data, source, "")


@dataclass(slots=True)
class Section:
    """One mapping of the file. Ask for its keys, then `close` it: that names the keys nobody asked for."""

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
        """Refuse keys that were not asked for."""
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

    def optional_integer(self, key: str, *, low: int = 0, high: int = 0xFFFF_FFFF) -> int | None:
        return self.integer(key, low=low, high=high) if self.has(key) else None

    def fraction(self, key: str, default: int) -> Fraction:
        """Read a decimal exactly as written: 0.01 is one hundredth."""
        if not self.has(key):
            return Fraction(default)
        value = self.data.pop(key)
        if isinstance(value, bool) or not isinstance(value, int | float):
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
        try:
            return parse_oid(self._checked(key, value, str))
        except ValueError as error:
            raise self.error(key, str(error)) from None

    def items(self, key: str, expected: type[T], *, required: bool = True) -> tuple[T, ...]:
        if not required and not self.has(key):
            return ()
        values = self.take(key, list)
        found = tuple(self._checked(f"{key}[{at}]", value, expected) for at, value in enumerate(values))
        if any(found.count(value) > 1 for value in found if not isinstance(value, dict | list)):
            raise self.error(key, "has the same entry twice")
        return found

    def section(self, key: str) -> "Section":
        return Section.of(self.take(key, dict), self.source, self.at(key))

    def optional_section(self, key: str) -> "Section":
        return self.section(key) if self.has(key) else Section({}, self.source, self.at(key))

    def sections(self) -> Iterator[tuple[str, "Section"]]:
        """Walk through all keys of this mapping, each of which names a mapping; they must look like keys."""
        for key in list(self.data):
            if not isinstance(key, str) or not _KEY.fullmatch(key):
                raise self.error(key, "is not a valid name: lower case, digits, _ and dots")
            yield key, self.section(key)

    def pairs(self) -> Mapping[Any, Any]:
        """Hand over all keys of this mapping at once."""
        data, self.data = self.data, {}
        return data


_NAMES: dict[type, str] = {str: "text", int: "a whole number", bool: "true or false", list: "a list", dict: "a mapping"}
