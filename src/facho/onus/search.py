"""Finds ONUs among a million: conditions and orders that an index serves, and rows for those that are shown.

A condition over two tables, such as a text of the ONU or of its customer, is served by no index. Each of its parts is.
So the parts are asked first: who matches is few and named by id, or many, and then any order soon comes by some.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property, reduce
from operator import or_

from django.db.models import F, OrderBy, Q, QuerySet
from django.utils.translation import gettext as _

from facho.hosts.models import Olt
from facho.hosts.store import OLT_SECRETS
from facho.onus.customers import FIELDS as CUSTOMER_TEXTS
from facho.onus.folding import fold
from facho.onus.models import Onu, OnuCustomer, OnuReading
from facho.onus.shown_state import in_state, is_unasked
from facho.onus.words import RunState, ShownState
from facho.polling.vendors.decoders import decode_mac, decode_serial
from facho.polling.vendors.values import Reject

# Trigrams need three letters; fewer would be half of all ONUs anyway.
MIN_LETTERS = 3
# Counted and named one by one; beyond, a list says "more than".
MANY = 10_000
ONU_TEXTS = ("serial", "mac", "description", "name")
DEFAULT_SORT = "place"

# Two to four numbers; whatever stands before them names the OLT.
_PLACE_TEXT = re.compile(r"(?:(?P<olt>.*\S)[\s:]+)?(?P<numbers>[0-9]{1,5}(?:/[0-9]{1,5}){1,3})")
_PLACE = ("olt__name", "pon_port__frame", "pon_port__slot", "pon_port__port", "onu_id", "pk")
# Who has no light comes behind the darkest; whose change nobody saw comes before the oldest.
_POWER = F("reading__rx_power_cdbm").asc(nulls_last=True)
_SINCE = F("reading__state_since").asc(nulls_first=True)
SORTS: Mapping[str, tuple[str | OrderBy, ...]] = {
    "place": _PLACE,
    "serial": ("serial", "pk"),
    "description": ("description", "pk"),
    "first_seen": ("first_seen_at", "pk"),
    "rx_power": (_POWER, "reading__onu_id"),
    "state_since": (_SINCE, "reading__onu_id"),
}
_OF_READINGS = frozenset({"rx_power", "state_since"})
SORT_WORDS = tuple(f"{sign}{name}" for name in SORTS for sign in ("", "-"))


class FoundOnus:
    """The ONUs that meet all conditions, in an order of SORT_WORDS; a minus before its name gives exactly the reverse.

    It is counted up to MANY and one more, and sliced into pages. Counting, and each page, take one or two queries.
    """

    def __init__(self, conditions: Sequence[Q], sort: str = DEFAULT_SORT) -> None:
        self._conditions = conditions
        self._name, self._is_reversed = sort.removeprefix("-"), sort.startswith("-")

    def count(self) -> int:
        """Return how many they are; MANY + 1 stands for more than MANY."""
        return self._count

    def __getitem__(self, part: slice) -> list[Onu]:
        # Only what decides the order is read of those on earlier pages.
        ids = list(self._sorted().values_list("pk", flat=True)[part])
        rows = shown_onus().in_bulk(ids)
        # Who was deleted in between is left out.
        return [rows[onu_id] for onu_id in ids if onu_id in rows]

    def in_batches(self, size: int) -> Iterator[list[Onu]]:
        """Give all of them by id, each batch by a query of its own: nothing is held, here or in the database."""
        last_id = 0
        while batch := list(shown_onus().filter(*self._conditions, pk__gt=last_id).order_by("pk")[:size]):
            yield batch
            last_id = batch[-1].pk

    @cached_property
    def _count(self) -> int:
        if len(self._conditions) == 1 and isinstance(self._conditions[0], CountedQ):
            return self._conditions[0].count
        return self._onus().values("pk")[: MANY + 1].count()

    def _onus(self) -> QuerySet[Onu]:
        return Onu.objects.filter(*self._conditions).order_by()

    def _sorted(self) -> QuerySet[Onu]:
        onus = self._onus()
        if self._name in _OF_READINGS:
            # Every ONU has a reading; saying so lets the database begin with the readings.
            onus = onus.filter(reading__isnull=False)
        ordered = onus.order_by(*SORTS[self._name])
        return ordered.reverse() if self._is_reversed else ordered


class CountedQ(Q):
    """A condition of which it is known how many ONUs meet it; MANY + 1 stands for more than MANY."""

    count = 0


def of_state(state: str) -> Q:
    """Match who is shown in a state."""
    if state != ShownState.UNKNOWN:
        return in_state(state)
    silent = Olt.objects.filter(is_unasked())
    behind_silence = Onu.objects.filter(is_present=True, olt__in=silent)
    never_known = OnuReading.objects.filter(run_state=RunState.UNKNOWN, onu__is_present=True)
    return _few_or(in_state(state), behind_silence, never_known)


def of_text(text: str) -> Q:
    """Match a part of what the OLT or people wrote about an ONU, accents aside; ValueError when it is too short."""
    wanted = long_enough(text)
    of_onu, of_customer = _any_has(ONU_TEXTS, wanted), _any_has(CUSTOMER_TEXTS, wanted)
    either = of_onu | _any_has([f"customer__{name}" for name in CUSTOMER_TEXTS], wanted)
    return _few_or(either, Onu.objects.filter(of_onu), OnuCustomer.objects.filter(of_customer))


def of_place(text: str) -> Q | None:
    """Match a card, a port or an ONU as people write its place, perhaps behind a part of its OLT's name; else None."""
    found = _PLACE_TEXT.fullmatch(text.strip())
    if found is None:
        return None
    numbers = map(int, found["numbers"].split("/"))
    names = ("pon_port__frame", "pon_port__slot", "pon_port__port", "onu_id")
    place = Q(**dict(zip(names, numbers, strict=False)))
    olt = (found["olt"] or "").rstrip(": ")
    return place & Q(olt__name__has=olt) if olt else place


def of_code(text: str) -> Q:
    """Match who has exactly this serial or hardware address, whichever way it is printed."""
    raw = text.strip().encode()
    serial, mac = decode_serial(raw), decode_mac(raw)
    serials = {text.strip(), text.strip().upper(), *([] if isinstance(serial, Reject) else [serial])}
    has_serial = Q(serial__in=sorted(serials))
    return has_serial if isinstance(mac, Reject) else has_serial | Q(mac=mac)


def of_serial(text: str) -> Q:
    """Match a part of the serial; ValueError when it is too short."""
    return _any_has(["serial"], long_enough(text))


def long_enough(text: str) -> str:
    """Return what is looked for; ValueError when it is too short. A mark is no letter."""
    wanted = text.strip()
    if len(fold(wanted)) < MIN_LETTERS:
        raise ValueError(_("Write at least %s letters.") % MIN_LETTERS)
    return wanted


def shown_onus() -> QuerySet[Onu]:
    """Select ONUs with all that is shown of them, without a secret of their OLT."""
    return Onu.objects.select_related("olt", "pon_port", "reading", "customer").defer(*OLT_SECRETS)


def _any_has(names: Iterable[str], text: str) -> Q:
    return reduce(or_, (Q(**{f"{name}__has": text}) for name in names))


def _few_or(condition: Q, *parts: "QuerySet[Onu] | QuerySet[OnuReading] | QuerySet[OnuCustomer]") -> CountedQ:
    """Name who is in any of the parts, which together are the condition; give the condition when they are many."""
    found: set[int] = set()
    for part in parts:
        found.update(part.order_by().values_list("pk", flat=True)[: MANY + 1 - len(found)])
    counted = CountedQ(condition) if len(found) > MANY else CountedQ(pk__in=sorted(found))
    counted.count = len(found)
    return counted
