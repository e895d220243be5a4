"""Which pollers belong to which group: those of the default group have the first numbers."""

import re
from collections.abc import Mapping

DEFAULT_GROUP = ""
# What an operator writes for the default group, where an empty text means that nothing changes.
NO_GROUP = "none"
# Part of the names of queues, where a dot divides.
_NAME = re.compile(r"[a-z0-9_-]{1,40}")


def is_group_name(text: str) -> bool:
    """Tell whether a group may have the name."""
    return text != NO_GROUP and _NAME.fullmatch(text) is not None


def numbers_by_group(start_pollers: int, groups: Mapping[str, int]) -> dict[str, range]:
    """Number the pollers of the default group from 0, and those of the others after them, in the order given."""
    numbers, first = {DEFAULT_GROUP: range(start_pollers)}, start_pollers
    for group, count in groups.items():
        numbers[group] = range(first, first + count)
        first += count
    return numbers


def queue_of(name: str, group: str) -> str:
    """Name the queue of a group; the default group has the plain name."""
    return f"{name}.{group}" if group else name


def group_of(queue: str) -> str:
    """Name the group whose queue it is."""
    return queue.partition(".")[2]
