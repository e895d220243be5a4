"""Reads faults from words such as `loss=0.1`, for command lines."""

from collections.abc import Callable, Iterable
from dataclasses import fields
from typing import Any

from facho.simulator.config import ConfigError
from facho.simulator.cost import CostModel
from facho.simulator.faults import Faults
from facho.simulator.lies import LoopKind


def read_faults(words: Iterable[str]) -> Faults:
    """Build faults from `name=value` words; ConfigError names the word that is wrong.

    `cost` takes the time scale of the cost model, `loop` a kind of loop; names may be written with dashes.
    """
    return Faults(**dict(map(_read_word, words)))


def _read_word(word: str) -> tuple[str, Any]:
    name, _, text = word.partition("=")
    name = name.replace("-", "_")
    types = {field.name: field.type for field in fields(Faults)}
    if name not in types:
        raise ConfigError(f"{word!r} is none of {', '.join(types)}")
    try:
        return name, _READERS[types[name]](text)
    except ValueError:
        raise ConfigError(f"{word!r} has no value that {name} could take") from None


def _amount(text: str) -> float:
    value = float(text)
    if not value >= 0:
        raise ValueError(text)
    return value


def _count(text: str) -> int:
    return int(_amount(text))


def _yes(text: str) -> bool:
    if text not in ("", "yes"):
        raise ValueError(text)
    return True


_READERS: dict[object, Callable[[str], object]] = {
    float: _amount,
    int | None: _count,
    bool: _yes,
    LoopKind | None: LoopKind,
    CostModel | None: lambda text: CostModel(time_scale=_amount(text)),
}
