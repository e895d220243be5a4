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
from facho.infrastructure.folding import fold
from facho.onus.customers import FIELDS as CUSTOMER_TEXTS
from facho.onus.models import Onu, OnuCustomer, OnuReading
from facho.onus.shown_state import in_state, is_unasked
from facho.onus.words import RunStateChoice, ShownState
from facho.polling.vendors.decoders import decode_mac, decode_serial
from facho.polling.vendors.vocabulary import Reject

# Trigrams need three letters; fewer would be half of all ONUs anyway.
MIN_LETTERS = 3
# More than anybody looks for; what takes the square of a text's length takes no time below it.
MAX_LETTERS = 255
# Counted and named one by one; beyond, a list says "more than".
MANY = 10_000
ONU_TEXTS = ("serial", "mac", "description", "name")
DEFAULT_SORT = "place"

# Two to four numbers; whatever stands before them names the OLT.
_PLACE_TEXT = re.compile(r"(?:(?P<olt>.*\S)[\s:]+)?(?P<numbers>[0-9]{1,5}(?:/[0-9]{1,5}){1,3})")
_PLACE = ("olt__name", "pon_port__frame", "pon_port__slot", "pon_port__port", "onu_id", "pk")
# ONUs without light come after the weakest, those without a change before the oldest.
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
    """The ONUs that meet all conditions, in an order of SORT_WORDS; a leading minus reverses it exactly.

    Counted up to MANY + 1 and sliced into pages; counting and each page take one or two queries.
    """

    def __init__(self, conditions: Sequence[Q], sort: str = DEFAULT_SORT) -> None:
        self._conditions = conditions
        self._name, self._is_reversed = sort.removeprefix("-"), sort.startswith("-")

    def count(self) -> int:
        return self._count

    def __getitem__(self, part: slice) -> list[Onu]:
        # Only what decides the order is read of those on earlier pages.
        ids = list(self._sorted().values_list("pk", flat=True)[part])
        rows = shown_onus().in_bulk(ids)
        # Rows deleted in between are left out.
        return [rows[onu_id] for onu_id in ids if onu_id in rows]

    def in_batches(self, size: int) -> Iterator[list[Onu]]:
        """Yield all by id, one query per batch: nothing is held open in the database."""
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
    """A condition with the known number of matching ONUs; MANY + 1 stands for more."""

    count = 0


def of_state(state: str) -> Q:
    if state != ShownState.UNKNOWN:
        return in_state(state)
    silent = Olt.objects.filter(is_unasked())
    behind_silence = Onu.objects.filter(is_present=True, olt__in=silent)
    never_known = OnuReading.objects.filter(run_state=RunStateChoice.UNKNOWN, onu__is_present=True)
    return _few_or(in_state(state), behind_silence, never_known)


def of_text(text: str) -> Q:
    """Match part of any text of an ONU, ignoring accents; ValueError if too short."""
    wanted = long_enough(text)
    of_onu, of_customer = _any_has(ONU_TEXTS, wanted), _any_has(CUSTOMER_TEXTS, wanted)
    either = of_onu | _any_has([f"customer__{name}" for name in CUSTOMER_TEXTS], wanted)
    return _few_or(either, Onu.objects.filter(of_onu), OnuCustomer.objects.filter(of_customer))


def of_place(text: str) -> Q | None:
    """Match a card, port or ONU by place, optionally after part of the OLT's name; None if the text is no place."""
    found = _PLACE_TEXT.fullmatch(text.strip()) if len(text) <= MAX_LETTERS else None
    if found is None:
        return None
    numbers = map(int, found["numbers"].split("/"))
    names = ("pon_port__frame", "pon_port__slot", "pon_port__port", "onu_id")
    place = Q(**dict(zip(names, numbers, strict=False)))
    olt = (found["olt"] or "").rstrip(": ")
    return place & Q(olt__name__has=olt) if olt else place


def of_code(text: str) -> Q:
    """Match an exact serial or hardware address, in any notation."""
    raw = text.strip().encode()
    serial, mac = decode_serial(raw), decode_mac(raw)
    serials = {text.strip(), text.strip().upper(), *([] if isinstance(serial, Reject) else [serial])}
    has_serial = Q(serial__in=sorted(serials))
    return has_serial if isinstance(mac, Reject) else has_serial | Q(mac=mac)


def of_serial(text: str) -> Q:
    """Match part of the serial; ValueError if too short."""
    return _any_has(["serial"], long_enough(text))


def long_enough(text: str) -> str:
    """Return the text; ValueError if it has too few letters or is too long."""
    wanted = short_enough(text).strip()
    if len(fold(wanted)) < MIN_LETTERS:
        raise ValueError(_("Enter at least %s letters.") % MIN_LETTERS)
    return wanted


def short_enough(text: str) -> str:
    """Return the text; ValueError if it is longer than any stored one."""
    if len(text) > MAX_LETTERS:
        raise ValueError(_("Enter at most %s letters.") % MAX_LETTERS)
    return text


def shown_onus() -> QuerySet[Onu]:
    """Select ONUs with everything shown of them, without OLT secrets."""
    return Onu.objects.select_related("olt", "pon_port", "reading", "customer").defer(*OLT_SECRETS)


def _any_has(names: Iterable[str], text: str) -> Q:
    return reduce(or_, (Q(**{f"{name}__has": text}) for name in names))


def _few_or(condition: Q, *parts: "QuerySet[Onu] | QuerySet[OnuReading] | QuerySet[OnuCustomer]") -> CountedQ:
    """Return the ids that meet any of the parts, or the condition itself when they are many."""
    found: set[int] = set()
    for part in parts:
        found.update(part.order_by().values_list("pk", flat=True)[: MANY + 1 - len(found)])
    counted = CountedQ(condition) if len(found) > MANY else CountedQ(pk__in=sorted(found))
    counted.count = len(found)
    return counted
