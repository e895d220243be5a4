"""The ONUs of an outage, by the page: how each is now, and what it said when it went."""

from dataclasses import dataclass

from facho.dashboard.onu_names import cause_of
from facho.dashboard.onu_rows import OnuRow, rows_of
from facho.onus.models import Outage
from facho.onus.outages_read_model import onus_of

ONUS_PER_PAGE = 50
# Further on nobody reads; the list of ONUs narrows better.
LAST_PAGE = 400


@dataclass(frozen=True, slots=True)
class OutageOnus:
    """A page of ONUs, each with its words of why it went; nothing was counted to find it."""

    rows: list[tuple[OnuRow, str]]
    number: int
    has_more: bool


def load_outage_onus(outage: Outage, page: str) -> OutageOnus:
    """Load a page by its number as an address has it; what is no number is the first."""
    number = min(int(page), LAST_PAGE) if page.isascii() and page.isdigit() and int(page) else 1
    first = (number - 1) * ONUS_PER_PAGE
    found = list(onus_of(outage).select_related("customer")[first : first + ONUS_PER_PAGE + 1])
    shown = found[:ONUS_PER_PAGE]
    rows = list(zip(rows_of(shown), map(cause_of, shown), strict=True))
    return OutageOnus(rows, number, len(found) > ONUS_PER_PAGE)
