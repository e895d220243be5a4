"""The two families of history: values of ONUs in blocks of their PON port, and values of OLTs in blocks of the OLT.

They differ in their tables alone. What is said of ports and ONUs holds for OLTs and the rows of their tables.
"""

from dataclasses import dataclass
from typing import Any, TypeAlias

from django.db.models import Model

from facho.hosts.models import Olt
from facho.hosts.value_history_models import (
    OltHistoryBlock,
    OltHistoryDays,
    OltHistoryHours,
    OltHistoryPoll,
    OltHistorySamples,
)
from facho.onus.history_models import HistoryBlock, HistoryDays, HistoryHours, HistoryPoll, HistorySamples
from facho.onus.models import PonPort

Poll: TypeAlias = HistoryPoll | OltHistoryPoll
Block: TypeAlias = HistoryBlock | OltHistoryBlock


@dataclass(frozen=True, slots=True)
class Family:
    """Tables that belong together; `key` names the column that says whose a block is."""

    key: str
    places: type[Model]
    polls: type[Any]
    samples: type[Any]
    hours: type[Any]
    days: type[Any]
    # Whether its values wander from one place to another.
    has_stays: bool

    def place_of(self, block: Block) -> int:
        """Return whose a block is."""
        place: int = getattr(block, self.key)
        return place


ONUS = Family("pon_port_id", PonPort, HistoryPoll, HistorySamples, HistoryHours, HistoryDays, has_stays=True)
OLTS = Family("olt_id", Olt, OltHistoryPoll, OltHistorySamples, OltHistoryHours, OltHistoryDays, has_stays=False)
FAMILIES = (ONUS, OLTS)
