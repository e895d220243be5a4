"""Discovery before GET, also on an OLT's first day: the state of its first discovery, and which nodes wait for it.

Before it is over, the ONUs are unknown. A read of ONUs would ask nothing, end well, and teach that it
takes no time.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class FirstDiscovery(StrEnum):
    """State of an OLT's first discovery; only a coming one ends the wait by itself."""

    DONE = "done"
    COMING = "coming"
    SUSPENDED = "suspended"
    DISABLED = "disabled"
    MISSING = "missing"


@dataclass(frozen=True, slots=True)
class DiscoveryNode:
    is_enabled: bool
    is_suspended: bool = False


def judge_first_discovery(*, is_discovered: bool, nodes: Iterable[DiscoveryNode]) -> FirstDiscovery:
    if is_discovered:
        return FirstDiscovery.DONE
    known = list(nodes)
    if not known:
        return FirstDiscovery.MISSING
    enabled = [node for node in known if node.is_enabled]
    if not enabled:
        return FirstDiscovery.DISABLED
    return FirstDiscovery.SUSPENDED if all(node.is_suspended for node in enabled) else FirstDiscovery.COMING


def must_wait(first: FirstDiscovery, *, reads_onus: bool) -> bool:
    """Whether a node has to wait; a discovery finds ONUs and needs none."""
    return reads_onus and first is not FirstDiscovery.DONE


def owes_slots(first: FirstDiscovery, *, reads_onus: bool) -> bool:
    """Whether slots count as owed: not while discovery is coming; one that is not is a fault operators must see."""
    return not reads_onus or first is not FirstDiscovery.COMING


def is_over(*, is_complete: bool, is_given_up: bool, found_any: bool) -> bool:
    """Whether an ended discovery counts as the first; agents that abort every walk have to be read too."""
    return is_complete or (is_given_up and found_any)
