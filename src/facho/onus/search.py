"""Finds ONUs among a million: conditions and orders that an index serves, and rows for those that are shown.

A condition over two tables, such as a text of the ONU or of its customer, is served by no index. Each of its parts is.
So the parts are asked first: who matches is few and named by id, or many, and then any order soon comes by some.
Texts are found by trigrams: an index on PostgreSQL, a full-text table that triggers keep on SQLite.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property, reduce
from operator import and_, or_

from django.db import connection
from django.db.models import F, OrderBy, Q, QuerySet, Value
from django.db.models.functions import Concat
from django.utils.translation import gettext as _

from facho.hosts.models import Olt
from facho.hosts.store import OLT_SECRETS
from facho.infrastructure.folding import Has, fold
from facho.onus.models import CUSTOMER_TEXTS, Onu, OnuCustomer, OnuReading
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
# Further words of a search only narrow what the first ones found.
MAX_WORDS = 5
ONU_TEXTS = ("serial", "mac", "description", "name", "model")
DEFAULT_SORT = "place"

_SEPARATORS = re.compile(r"[-:.()+/\s]")
_HEX = re.compile(r"[0-9A-Fa-f]{4,12}")
# Signs and digits, and enough of these.
_PHONE = re.compile(r"[-().+/\s]*([0-9][-().+/\s]*){6,}")
_COUNTRY_DIGITS = 3
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
# No index has these orders: lists of up to MANY are sorted by them.
SMALL_SORTS: Mapping[str, tuple[str | OrderBy, ...]] = {
    "customer": ("customer__label", "description", "pk"),
    "state": ("reading__run_state", "pk"),
    "cause": ("reading__last_down_cause", "pk"),
    "model": ("model", "pk"),
    "firmware": ("firmware", "pk"),
    "mac": ("mac", "pk"),
    "tags": ("customer__tags", "pk"),
    "contract": ("customer__contract", "pk"),
    "phone": ("customer__phone_digits", "pk"),
    "address": ("customer__address", "pk"),
    "distance": (F("reading__distance_m").asc(nulls_last=True), "pk"),
    "olt_rx_power": (F("reading__olt_rx_power_cdbm").asc(nulls_last=True), "pk"),
    "tx_power": (F("reading__tx_power_cdbm").asc(nulls_last=True), "pk"),
    "temperature": (F("reading__temperature_tenths").asc(nulls_last=True), "pk"),
}
_OF_READINGS = frozenset({"rx_power", "state_since"})
SORT_WORDS = tuple(f"{sign}{name}" for name in SORTS for sign in ("", "-"))


class FoundOnus:
    """The ONUs that meet all conditions, in an order of SORTS or SMALL_SORTS; a leading minus reverses it exactly.

    An order of SMALL_SORTS is the one by place where there are more than MANY.

    Counted up to MANY + 1 and sliced into pages; counting and each page take a query.
    """

    def __init__(self, conditions: Sequence[Q], sort: str = DEFAULT_SORT) -> None:
        self._conditions = conditions
        self._name, self._is_reversed = sort.removeprefix("-"), sort.startswith("-")

    def count(self) -> int:
        return self._count

    @property
    def is_small(self) -> bool:
        """Whether they can be sorted by any column."""
        return self._count <= MANY

    def load_ids(self) -> list[int]:
        """Load the ids of up to MANY + 1, in no order; one query."""
        return list(self._onus().values_list("pk", flat=True)[: MANY + 1])

    def __getitem__(self, part: slice) -> list[Onu]:
        # Only what decides the order is read of those on earlier pages.
        chosen = self._sorted().values("pk")[part]
        return list(self._in_order(shown_onus().filter(pk__in=chosen)))

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
        return self._in_order(onus)

    def _in_order(self, onus: QuerySet[Onu]) -> QuerySet[Onu]:
        small = SMALL_SORTS.get(self._name) if self._name in SMALL_SORTS and self.is_small else None
        ordered = onus.order_by(*(small or SORTS.get(self._name, _PLACE)))
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
    """Match ONUs that have every word in one of their texts, in any order, ignoring accents; ValueError if too short.

    Codes match with and without separators, telephone numbers by their digits. Words that are each on more than MANY
    ONUs must stand in texts of the same table, so that an index answers.
    """
    wanted = long_enough(text)
    words = [Wording(word) for word in dict.fromkeys(wanted.split())]
    indexed = [word for word in words if word.is_indexed][:MAX_WORDS]
    # The groups of a telephone number are no words of their own.
    if len(words) > 1 and _PHONE.fullmatch(wanted) and 0 < (whole := of_phrase(wanted)).count <= MANY:
        return whole
    if not indexed:
        return of_phrase(wanted)
    found = {word: ids for word in indexed if len(ids := word.load_ids()) <= MANY}
    rest = [word.condition for word in words if word not in found]
    if len(indexed) > 1 and not found and len(together := _load_ids(indexed)) <= MANY:
        found, rest = {indexed[0]: together}, [word.condition for word in words if word not in indexed]
    if found:
        ids = set.intersection(*found.values())
        return reduce(and_, rest, Q(pk__in=sorted(ids))) if rest else _counted(Q(pk__in=sorted(ids)), len(ids))
    return _counted(rest[0], MANY + 1) if len(rest) == 1 else reduce(and_, rest)


def of_phrase(text: str) -> "CountedQ":
    """Match ONUs that have the text as it was typed; ValueError if too short."""
    wording = Wording(long_enough(text))
    ids = wording.load_ids()
    return _counted(wording.condition, len(ids)) if len(ids) > MANY else _counted(Q(pk__in=sorted(ids)), len(ids))


def of_tag(tag: str) -> Q:
    """Match ONUs whose customer has exactly this tag."""
    wording = Wording(tag, customer_columns=("tags",), onu_columns=())
    has_tag = Q(Has(Concat(Value(", "), F("customer__tags"), Value(", ")), f", {tag}, "))
    if not wording.is_indexed or len(ids := wording.load_ids()) > MANY:
        return has_tag
    return has_tag & Q(pk__in=sorted(ids))


def of_model(text: str) -> Q:
    """Match part of the ONU's model; ValueError if too short."""
    wording = Wording(long_enough(text), customer_columns=(), onu_columns=("model",))
    ids = wording.load_ids()
    return Q(pk__in=sorted(ids)) if len(ids) <= MANY else wording.condition


class Wording:
    """A text in every way in which it may be stored, and the columns that may hold it so."""

    def __init__(
        self,
        text: str,
        *,
        onu_columns: Sequence[str] = ONU_TEXTS,
        customer_columns: Sequence[str] = CUSTOMER_TEXTS,
    ) -> None:
        self.text, self.is_indexed = text, len(fold(text)) >= MIN_LETTERS
        self.of_onu: list[tuple[Sequence[str], str]] = [(onu_columns, text)] if onu_columns else []
        self.of_customer: list[tuple[Sequence[str], str]] = [(customer_columns, text)] if customer_columns else []
        compact = _SEPARATORS.sub("", text)
        if len(compact) < MIN_LETTERS or not compact.isascii():
            return
        if "serial" in onu_columns:
            serial = decode_serial(compact.encode())
            spelled = {compact, *([serial] if isinstance(serial, str) else [])} - {text}
            self.of_onu += [(("serial",), each) for each in sorted(spelled)]
            # A part of an address may begin in the middle of an octet.
            if _HEX.fullmatch(compact):
                pairs = {":".join(re.findall("..?", compact)), ":".join([compact[:1], *re.findall("..?", compact[1:])])}
                self.of_onu += [(("mac",), each) for each in sorted(pairs - {text})]
        if "phone" in customer_columns and compact.isdigit():
            # With a plus the country's code stands first, which few write down for their own country.
            local = compact[_COUNTRY_DIGITS:] if text.startswith(("+", "00")) else compact
            self.of_customer.append((("phone_digits",), local if len(local) > MIN_LETTERS else compact))

    @property
    def condition(self) -> Q:
        """The match row by row, over both tables; one or two letters match where a word begins."""
        if not self.is_indexed:
            return _any_begins(
                [*self.of_onu[0][0], *(f"customer__{name}" for name in self.of_customer[0][0])], self.text
            )
        customer = [([f"customer__{name}" for name in names], text) for names, text in self.of_customer]
        return reduce(or_, (_any_has(names, text) for names, text in [*self.of_onu, *customer]))

    def load_ids(self) -> set[int]:
        """Load the ids of up to MANY + 1 ONUs by the indexes of texts; one query."""
        return _load_ids([self])


def _load_ids(words: Sequence[Wording]) -> set[int]:
    """Load the ids of ONUs that have all words in one table, up to MANY + 1 of each; one query."""
    sides = (
        (Onu, "onu_text_index", [word.of_onu for word in words]),
        (OnuCustomer, "onu_customer_text_index", [word.of_customer for word in words]),
    )
    asked = [(model, table, parts) for model, table, parts in sides if all(parts)]
    if connection.vendor == "sqlite":
        each = "SELECT * FROM (SELECT rowid FROM {0} WHERE {0} MATCH %s LIMIT %s)"
        statement = " UNION ALL ".join(each.format(table) for _model, table, _parts in asked)
        with connection.cursor() as cursor:
            cursor.execute(statement, [value for _model, _table, parts in asked for value in (_match(parts), MANY + 1)])
            return {int(row[0]) for row in cursor.fetchall()}
    rows = [
        model._default_manager.filter(*(reduce(or_, (_any_has(*way) for way in ways)) for ways in parts))
        .order_by()
        .values_list("pk", flat=True)[: MANY + 1]
        for model, _table, parts in asked
    ]
    return set(rows[0].union(*rows[1:], all=True) if len(rows) > 1 else rows[0])


def _match(words: Sequence[Sequence[tuple[Sequence[str], str]]]) -> str:
    """Write what the full-text table is asked: all words, each in any of its spellings."""

    def spelled(columns: Sequence[str], text: str) -> str:
        quoted = fold(text).replace('"', '""')
        return f'{{{" ".join(columns)}}} : "{quoted}"'

    return " AND ".join(f"({' OR '.join(spelled(*way) for way in ways)})" for ways in words)


def _counted(condition: Q, count: int) -> "CountedQ":
    counted = CountedQ(condition)
    counted.count = count
    return counted


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
        raise ValueError(_("Enter at least %s characters.") % MIN_LETTERS)
    return wanted


def short_enough(text: str) -> str:
    """Return the text; ValueError if it is longer than any stored one."""
    if len(text) > MAX_LETTERS:
        raise ValueError(_("Enter at most %s characters.") % MAX_LETTERS)
    return text


def shown_onus() -> QuerySet[Onu]:
    """Select ONUs with everything shown of them, without OLT secrets."""
    return Onu.objects.select_related("olt", "pon_port", "reading", "customer").defer(*OLT_SECRETS)


def _any_has(names: Iterable[str], text: str, /) -> Q:
    return reduce(or_, (Q(**{f"{name}__has": text}) for name in names))


def _any_begins(names: Iterable[str], text: str) -> Q:
    return reduce(or_, (Q(Has(Concat(Value(" "), F(name)), f" {text}")) for name in names))


def _few_or(condition: Q, *parts: "QuerySet[Onu] | QuerySet[OnuReading] | QuerySet[OnuCustomer]") -> CountedQ:
    """Return the ids that meet any of the parts, or the condition itself when they are many."""
    found: set[int] = set()
    for part in parts:
        found.update(part.order_by().values_list("pk", flat=True)[: MANY + 1 - len(found)])
    return _counted(condition if len(found) > MANY else Q(pk__in=sorted(found)), len(found))
