"""The period that a plot shows, as its address has it, and the addresses of what is near: earlier, later, closer.

Times in addresses are in UTC, so that an address shows everybody the same period.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.dateparse import parse_datetime
from django.utils.functional import Promise
from django.utils.timezone import is_naive, make_aware
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

# A closer look shows no more: ONUs are not read that often.
SHORTEST = timedelta(minutes=5)
LONGEST = timedelta(days=3660)
# Earlier times are no times of a poll, and arithmetic with them fails.
_OLDEST = datetime(2000, 1, 1, tzinfo=UTC)
_MAX_LETTERS = 40
# Curves that can still be told apart.
MAX_COMPARED = 6
FIRST_SPAN = "day"


@dataclass(frozen=True, slots=True)
class PlotSpan:
    """A selectable period; the grid has a line every `step_hours`."""

    key: str
    name: Promise | str
    length: timedelta
    step_hours: float
    label: str


SPANS: Mapping[str, PlotSpan] = MappingProxyType(
    {
        span.key: span
        for span in (
            PlotSpan("day", gettext_lazy("Day"), timedelta(days=1), 4, "H:i"),
            PlotSpan("week", gettext_lazy("Week"), timedelta(days=7), 24, "D"),
            PlotSpan("month", gettext_lazy("Month"), timedelta(days=30), 120, "j M"),
        )
    }
)
_MINUTE = 1 / 60
# The grid of any other period: the first with eight lines or fewer.
_STEPS = (
    (_MINUTE, "H:i"),
    (5 * _MINUTE, "H:i"),
    (15 * _MINUTE, "H:i"),
    (0.5, "H:i"),
    (1, "H:i"),
    (2, "H:i"),
    (4, "H:i"),
    (12, "j M H:i"),
    (24, "j M"),
    (48, "j M"),
    (120, "j M"),
    (336, "j M"),
    (720, "j M"),
    (2160, "M Y"),
    (8760, "Y"),
)
_LINES = 8


@dataclass(frozen=True, slots=True)
class PlotRange:
    """A period by the name of a span that ends now, or of its own; and the ONUs that are compared."""

    start: datetime
    end: datetime
    now: datetime
    span: str = ""
    compared: tuple[int, ...] = ()
    # What of the address could not be used; for people.
    problem: str = ""

    @property
    def is_live(self) -> bool:
        """Whether it ends now and moves on with the time."""
        return self.end >= self.now

    @property
    def query(self) -> str:
        """The address of this plot."""
        times = {"span": self.span} if self.span else {"from": _text(self.start), "to": _text(self.end)}
        compared = {"with": ",".join(map(str, self.compared))} if self.compared else {}
        return urlencode({**times, **compared}, safe=":,")

    @property
    def grid(self) -> PlotSpan:
        if self.span:
            return SPANS[self.span]
        length = self.end - self.start
        hours, label = next((s for s in _STEPS if length <= timedelta(hours=s[0] * _LINES)), _STEPS[-1])
        return PlotSpan("", "", length, hours, label)

    @property
    def earlier(self) -> str:
        return self._moved(-(self.end - self.start) / 2).query

    @property
    def later(self) -> str:
        """Empty where nothing is later."""
        return "" if self.is_live else self._moved((self.end - self.start) / 2).query

    @property
    def closer(self) -> str:
        """Half of the period around its middle; empty where it is the shortest."""
        quarter = (self.end - self.start) / 4
        return "" if quarter * 4 <= SHORTEST else self._between(self.start + quarter, self.end - quarter).query

    @property
    def wider(self) -> str:
        half = (self.end - self.start) / 2
        return "" if half * 4 > LONGEST else self._between(self.start - half, min(self.end + half, self.now)).query

    @property
    def spans(self) -> list[tuple[PlotSpan, str]]:
        return [(span, replace(self, span=span.key).query) for span in SPANS.values()]

    def with_compared(self, onu_ids: Iterable[int], problem: str = "") -> "PlotRange":
        return replace(self, compared=tuple(onu_ids), problem=self.problem or problem)

    def _moved(self, by: timedelta) -> "PlotRange":
        by = min(by, self.now - self.end)
        return self._between(self.start + by, self.end + by)

    def _between(self, start: datetime, end: datetime) -> "PlotRange":
        return replace(self, start=max(start, _OLDEST), end=max(end, _OLDEST + SHORTEST), span="")


def range_of(given: Mapping[str, str], now: datetime) -> PlotRange:
    """Read the period of an address; what cannot be used becomes the usual period and says why."""
    asked = given.get("span", "")
    span = SPANS.get(asked, SPANS[FIRST_SPAN])
    usual = PlotRange(now - span.length, now, now, span.key)
    since, until = (_time(given.get(name, "")) for name in ("from", "to"))
    if since is None and until is None:
        is_wrong = bool(given.get("from") or given.get("to"))
        return replace(usual, problem=_("Enter a date and a time.")) if is_wrong else usual
    end = min(until or now, now)
    start = max(since or end - span.length, _OLDEST)
    if start >= end:
        return replace(usual, problem=_("Choose a start before the end."))
    # Around its middle, as much as can be shown.
    missing = max(SHORTEST - (end - start), timedelta(0))
    end = min(end + missing / 2, now)
    return PlotRange(max(min(start, end - SHORTEST), end - LONGEST), end, now)


def compared_of(texts: Sequence[str]) -> list[str]:
    """Return what an address or the field compares with: ids or serials, separated by commas or spaces."""
    words = " ".join(texts).replace(",", " ").split()
    return list(dict.fromkeys(word[:_MAX_LETTERS] for word in words))[:MAX_COMPARED]


def lead_on(request: HttpRequest, shown: PlotRange) -> HttpResponse | None:
    """Lead from what was typed into the fields to the address that can be shared; None if it is one."""
    given = request.GET
    is_typed = any(_is_typed(given.get(name, "")) for name in ("from", "to")) or not all(
        word.isdecimal() for word in compared_of(given.getlist("with"))
    )
    return redirect(f"{request.path}?{shown.query}") if is_typed and not shown.problem else None


def _is_typed(text: str) -> bool:
    return bool(text) and not text.endswith("Z")


def _time(text: str) -> datetime | None:
    try:
        moment = parse_datetime(text[:_MAX_LETTERS])
        if moment is None:
            return None
        at = (make_aware(moment) if is_naive(moment) else moment).astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return at


def _text(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
