"""What a read costs an OLT in time: a guess before it was ever done, and a bound for each of its questions.

The guess comes from the shape of the tables and public measurements; once runs were measured, those count instead.
"""

import math
from collections import Counter
from collections.abc import Collection

from facho.polling.domain.collection import CollectRequest
from facho.polling.domain.execution_state import QueryType
from facho.polling.snmp.courier import MOST_TIMEOUTS
from facho.polling.snmp.target import CHEAP
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
# Tables of the OLT itself are short compared with its ONUs.
OTHER_ROWS = {Scope.BOARD: 16, Scope.PART: 8, Scope.AUTOFIND: 8, Scope.INTERFACE: 64, Scope.SCALAR: 1}


def estimate_read_seconds(
    definition: Definition, keys: Collection[str], *, onus: int, round_trip_seconds: float = 0.0
) -> float:
    """Estimate how long one read of these columns takes on an OLT with that many ONUs."""
    columns = [definition.column(key) for key in keys or definition.identity_columns()]
    polling, page_seconds = definition.polling, max(PAGE_SECONDS, min(round_trip_seconds, MAX_PAGE_SECONDS))
    seconds = 0.0
    for scope, width in Counter(column.index.scope for column in columns).items():
        rows = {Scope.ONU: onus, Scope.PON: estimate_ports(onus)}.get(scope) or OTHER_ROWS.get(scope, 1)
        pages = math.ceil(rows / polling.max_repetitions) * math.ceil(width / polling.max_varbinds)
        seconds += pages * page_seconds + rows * width * CELL_SECONDS
    is_live = any(column.cost is Cost.LIVE and column.index.scope is Scope.ONU for column in columns)
    return seconds + (onus * LIVE_ONU_SECONDS if is_live else 0.0)


def longest_answer_seconds(definition: Definition | None, request: CollectRequest, max_timeout_seconds: float) -> float:
    """Return how long one request of this read may keep the OLT busy, by the reader's timeouts."""
    if definition is None:
        return min(CHEAP.timeout_s, max_timeout_seconds) * MOST_TIMEOUTS
    keys = [key for key in request.columns if definition.has_column(key)]
    # A read without columns is interactive and may read anything.
    is_live = not (keys or request.oids or request.query_type is QueryType.DISCOVERY)
    is_live = is_live or any(definition.column(key).cost is Cost.LIVE for key in keys)
    classes = definition.polling.classes
    slowest = max(rule.timeout_seconds for cost, rule in classes.items() if is_live or cost is not Cost.LIVE)
    return min(slowest, max_timeout_seconds) * MOST_TIMEOUTS


def estimate_ports(onus: int) -> int:
    return max(math.ceil(onus / ONUS_PER_PORT), 1)
