"""The two families of history: values of ONUs in blocks of their PON port, and values of OLTs in blocks of the OLT.

They differ in their tables alone. What is said of ports and ONUs holds for OLTs and the rows of their tables.
"""

from dataclasses import dataclass
from typing import Any, TypeAlias

from django.db.models import Model

from facho.hosts.history_models import (
    OltHistoryBlock,
    OltHistoryDays,
    OltHistoryHours,
    OltHistoryPoll,
    OltHistorySamples,
)
from facho.hosts.models import Olt
from facho.onus.history_models import HistoryBlock, HistoryDays, HistoryHours, HistoryPoll, HistorySamples
from facho.onus.models import PonPort

Poll: TypeAlias = HistoryPoll | OltHistoryPoll
Block: TypeAlias = HistoryBlock | OltHistoryBlock


@dataclass(frozen=True, slots=True)
class HistoryFamily:
    """The tables of one kind of history; `key` is the column of their owner."""

    key: str
    places: type[Model]
    polls: type[Any]
    samples: type[Any]
    hours: type[Any]
    days: type[Any]
    # Whether its values wander from one place to another.
    has_stays: bool

    def place_of(self, block: Block) -> int:
        place: int = getattr(block, self.key)
        return place


ONUS = HistoryFamily("pon_port_id", PonPort, HistoryPoll, HistorySamples, HistoryHours, HistoryDays, has_stays=True)
OLTS = HistoryFamily("olt_id", Olt, OltHistoryPoll, OltHistorySamples, OltHistoryHours, OltHistoryDays, has_stays=False)
FAMILIES = (ONUS, OLTS)
