"""Search from anywhere: ONUs by what is written of them or by place, those that wait, and OLTs by name or address."""

from dataclasses import dataclass, field
from datetime import datetime

from django.db.models import Q
from django.urls import reverse

from facho.accounts.scope import OltScope
from facho.dashboard.onu_names import Since, code_of, name_of, since_of
from facho.hosts.models import Olt, WaitingOnu
from facho.onus.folding import fold
from facho.onus.models import Onu
from facho.onus.search import MIN_LETTERS as ONU_LETTERS
from facho.onus.search import FoundOnus, of_code, of_place, of_text, shown_onus
from facho.onus.shown_state import shown_state

# One letter is on half of all names.
MIN_LETTERS = 2
MAX_LETTERS = 100
# So many are looked at to put first whoever has a word that begins like this.
RANKED = 100


@dataclass(frozen=True, slots=True)
class OltHit:
    """An OLT that was found."""

    id: int
    name: str
    address: str


@dataclass(frozen=True, slots=True)
class OnuHit:
    """An ONU that was found, by whatever names it best; everything in it may be text that a device chose."""

    id: int
    code: str
    name: str
    olt: str
    place: str
    state: str
    state_words: str
    since: Since


@dataclass(frozen=True, slots=True)
class WaitingHit:
    """An ONU that was found and that its OLT does not serve yet; its texts are the device's."""

    serial: str
    model: str
    olt_id: int
    olt: str
    place: str
    since: datetime


@dataclass(frozen=True, slots=True)
class Found:
    """What was found, as far as it is listed; `has_more` ONUs are not."""

    text: str
    olts: list[OltHit]
    onus: list[OnuHit]
    waiting: list[WaitingHit] = field(default_factory=list)
    has_more: bool = False

    @property
    def is_short(self) -> bool:
        """Tell whether ONUs were not looked for, because there are too many with so little in common."""
        return _letters(self.text) < ONU_LETTERS

    @property
    def is_nothing(self) -> bool:
        """Tell whether there is nothing to list."""
        return not (self.olts or self.onus or self.waiting)


def tidy(text: str) -> str:
    """Keep what can be meant of what somebody typed or sent."""
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text[:MAX_LETTERS]).split())


def find(text: str, scope: OltScope, *, lines: int) -> Found:
    """Find OLTs and ONUs in scope, at most so many of each; at most ten queries."""
    if _letters(text) < MIN_LETTERS:
        return Found(text, [], [])
    onus = _find_onus(text, scope, lines + 1)
    hits, waiting = [_hit(onu) for onu in onus[:lines]], _find_waiting(text, scope, lines)
    return Found(text, _find_olts(text, scope, lines), hits, waiting, len(onus) > lines)


def find_page(text: str, found: Found, scope: OltScope) -> str:
    """Return the address of the one thing that is meant; empty when it may be several or none."""
    exact = _exact_pages(text, scope) if _letters(text) >= MIN_LETTERS else []
    pages = exact or [_olt_page(olt.id) for olt in found.olts] + [_onu_page(onu.id) for onu in found.onus]
    return pages[0] if len(pages) == 1 and not found.waiting else ""


def _find_olts(text: str, scope: OltScope, count: int) -> list[OltHit]:
    named = Q(name__has=text) | Q(host__has=text) | Q(address__startswith=text)
    olts = scope.narrow(Olt.objects.filter(named), "").order_by("name", "id")
    return [OltHit(*row) for row in olts.values_list("id", "name", "address")[:count]]


def _find_onus(text: str, scope: OltScope, count: int) -> list[Onu]:
    """Take a place for a place, unless nothing is there: then it may be a part of a street."""
    place = of_place(text)
    there = FoundOnus([place, scope.condition()])[:count] if place is not None else []
    if there or _letters(text) < ONU_LETTERS:
        return there
    found = FoundOnus([of_text(text), scope.condition()], "serial")[: max(RANKED, count)]
    return sorted(found, key=lambda onu: not _begins(onu, fold(text)))[:count]


def _find_waiting(text: str, scope: OltScope, count: int) -> list[WaitingHit]:
    """Find by a part of the serial; the table is as small as what nobody has authorised yet."""
    if _letters(text) < ONU_LETTERS:
        return []
    onus = scope.narrow(WaitingOnu.objects.filter(serial__icontains=text)).select_related("olt").only(*_WAITING_COLUMNS)
    return [
        WaitingHit(onu.serial, onu.model, onu.olt_id, onu.olt.name, onu.pon_port, onu.first_seen_at)
        for onu in onus.order_by("serial", "id")[:count]
    ]


_WAITING_COLUMNS = ("serial", "model", "frame", "slot", "port", "first_seen_at", "olt__name")


def _exact_pages(text: str, scope: OltScope) -> list[str]:
    named = scope.narrow(Olt.objects.filter(Q(name__has=text) | Q(host__has=text)), "").order_by("id")
    olts = [pk for pk, *names in named.values_list("id", "name", "host") if fold(text) in map(fold, names)]
    # Of several rows of a serial the present one is meant.
    codes = list(scope.narrow(shown_onus()).filter(of_code(text)).order_by("-is_present", "id")[:3])
    onus = [onu for onu in codes if onu.is_present] or codes
    return [_olt_page(pk) for pk in olts] + [_onu_page(onu.id) for onu in onus]


def _letters(text: str) -> int:
    """Count what can be looked for: a mark is no letter."""
    return len(fold(text))


def _begins(onu: Onu, text: str) -> bool:
    """Tell whether a word of what names the ONU begins with the text, which is in it somewhere."""
    customer = getattr(onu, "customer", None)
    names = (onu.serial, onu.description, onu.name, onu.mac, customer.label if customer else "")
    return any(f" {fold(name)}".find(f" {text}") >= 0 for name in names)


def _hit(onu: Onu) -> OnuHit:
    state = shown_state(onu)
    return OnuHit(
        id=onu.id,
        code=code_of(onu),
        name=name_of(onu),
        olt=onu.olt.name,
        place=f"{onu.pon_port}/{onu.onu_id}",
        state=state.value,
        state_words=str(state.label),
        since=since_of(onu, state),
    )


def _olt_page(olt_id: int) -> str:
    return reverse("olt", args=[olt_id])


def _onu_page(onu_id: int) -> str:
    return reverse("onu", args=[onu_id])
