"""Estimates how long a read takes before it was ever done, from the shape of its tables and public measurements.

A guess to choose by; once runs have been measured, what they took counts instead.
"""

import math
from collections import Counter
from collections.abc import Collection

from facho.polling.vendors.definition import Definition
from facho.polling.vendors.vocabulary import Cost, Scope

# Of a small chassis with 817 ONUs: a page of stored values costs so much where the way is short, and each value a
# little. A value that the OLT asks its ONU for costs 105 to 290 ms an ONU, however many columns.
PAGE_SECONDS = 0.05
# One answer that was late, or came to a second question, does not make every page so.
MAX_PAGE_SECONDS = 0.25
CELL_SECONDS = 0.00025
LIVE_ONU_SECONDS = 0.2
ONUS_PER_PORT = 32
# Tables of the OLT itself are short; how short hardly matters beside its ONUs.
OTHER_ROWS = {Scope.BOARD: 16, Scope.PART: 8, Scope.AUTOFIND: 8, Scope.INTERFACE: 64, Scope.SCALAR: 1}


def estimate_read_seconds(
    definition: Definition, keys: Collection[str], *, onus: int, round_trip_seconds: float = 0.0
) -> float:
    """Guess how long one read of these columns takes on an OLT with so many ONUs."""
    columns = [definition.column(key) for key in keys or definition.identity_columns()]
    seconds = sum(
        _walk_seconds(definition, _rows(scope, onus), width, round_trip_seconds)
        for scope, width in Counter(column.index.scope for column in columns).items()
    )
    is_live = any(column.cost is Cost.LIVE and column.index.scope is Scope.ONU for column in columns)
    return seconds + (onus * LIVE_ONU_SECONDS if is_live else 0.0)


def estimate_ports(onus: int) -> int:
    """Guess over how many PON ports so many ONUs are spread."""
    return max(math.ceil(onus / ONUS_PER_PORT), 1)


def _rows(scope: Scope, onus: int) -> int:
    return {Scope.ONU: onus, Scope.PON: estimate_ports(onus)}.get(scope) or OTHER_ROWS.get(scope, 1)


def _walk_seconds(definition: Definition, rows: int, width: int, round_trip_seconds: float) -> float:
    polling = definition.polling
    pages = math.ceil(rows / polling.max_repetitions) * math.ceil(width / polling.max_varbinds)
    page_seconds = max(PAGE_SECONDS, min(round_trip_seconds, MAX_PAGE_SECONDS))
    return pages * page_seconds + rows * width * CELL_SECONDS
