"""Search from anywhere: ONUs by what is written of them or by place, those that wait, and OLTs by name or address."""

from dataclasses import dataclass, field

from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_safe

from facho.accounts.scope import OltScope, scope_of
from facho.dashboard.onu.list import OnuLine, rows_of
from facho.dashboard.shared.page import for_users
from facho.hosts.models import Olt, WaitingOnu
from facho.infrastructure.folding import fold
from facho.onus.models import Onu
from facho.onus.search import MIN_LETTERS as ONU_LETTERS
from facho.onus.search import FoundOnus, of_code, of_phrase, of_place, of_text, shown_onus

# One letter is on half of all names.
MIN_LETTERS = 2
MAX_LETTERS = 100
# Candidates loaded in order to rank matches at the start of a word first.
RANKED = 100
_WAITING_COLUMNS = ("serial", "model", "frame", "slot", "port", "first_seen_at", "olt__name")
PAGE_LINES = 50
SUGGESTION_LINES = 6


@dataclass(frozen=True, slots=True)
class Found:
    """The listed results; `has_more` if there are more ONUs."""

    text: str
    olts: list[Olt]
    onus: list[OnuLine]
    waiting: list[WaitingOnu] = field(default_factory=list)
    has_more: bool = False

    @property
    def is_short(self) -> bool:
        return _letters(self.text) < ONU_LETTERS

    @property
    def is_nothing(self) -> bool:
        return not (self.olts or self.onus or self.waiting)


def tidy(text: str) -> str:
    """Strip control characters and cap the length of a search text."""
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text[:MAX_LETTERS]).split())


def find(text: str, scope: OltScope, *, lines: int) -> Found:
    """Find OLTs and ONUs in scope, at most `lines` of each; at most ten queries."""
    if _letters(text) < MIN_LETTERS:
        return Found(text, [], [])
    onus = _find_onus(text, scope, lines + 1)
    named = Q(name__has=text) | Q(host__has=text) | Q(address__startswith=text)
    olts = scope.narrow(Olt.objects.filter(named), "").order_by("name", "id")
    return Found(
        text,
        list(olts.only("name", "address")[:lines]),
        rows_of(onus[:lines]),
        _find_waiting(text, scope, lines),
        len(onus) > lines,
    )


def find_page(text: str, found: Found, scope: OltScope) -> str:
    """Return the URL of the only exact match; empty if there are several or none."""
    exact = _exact_pages(text, scope) if _letters(text) >= MIN_LETTERS else []
    pages = exact or [_olt_page(olt.id) for olt in found.olts] + [_onu_page(onu.id) for onu in found.onus]
    return pages[0] if len(pages) == 1 and not found.waiting else ""


def _find_onus(text: str, scope: OltScope, count: int) -> list[Onu]:
    """Search a place as such first; if nothing is there, as text: it may be part of an address."""
    place = of_place(text)
    there = FoundOnus([place, scope.condition()])[:count] if place is not None else []
    if there or _letters(text) < ONU_LETTERS:
        return there
    found = FoundOnus([of_text(text), scope.condition()], "serial")[: max(RANKED, count)]
    if " " in text and len(found) >= RANKED:
        # Words in any order are on many: what was typed comes first.
        found = [*FoundOnus([of_phrase(text), scope.condition()], "serial")[:RANKED], *found]
        found = list({onu.pk: onu for onu in found}.values())
    return sorted(found, key=lambda onu: not _begins(onu, fold(text)))[:count]


def _find_waiting(text: str, scope: OltScope, count: int) -> list[WaitingOnu]:
    """Search by part of the serial; the table is small."""
    if _letters(text) < ONU_LETTERS:
        return []
    onus = scope.narrow(WaitingOnu.objects.filter(serial__icontains=text)).select_related("olt").only(*_WAITING_COLUMNS)
    return list(onus.order_by("serial", "id")[:count])


def _exact_pages(text: str, scope: OltScope) -> list[str]:
    named = scope.narrow(Olt.objects.filter(Q(name__has=text) | Q(host__has=text)), "").order_by("id")
    olts = [pk for pk, *names in named.values_list("id", "name", "host") if fold(text) in map(fold, names)]
    # Of several rows of a serial the present one is meant.
    codes = list(scope.narrow(shown_onus()).filter(of_code(text)).order_by("-is_present", "id")[:3])
    onus = [onu for onu in codes if onu.is_present] or codes
    return [_olt_page(pk) for pk in olts] + [_onu_page(onu.id) for onu in onus]


def _letters(text: str) -> int:
    """Count letters and digits: punctuation is not searched."""
    return len(fold(text))


def _begins(onu: Onu, text: str) -> bool:
    customer = getattr(onu, "customer", None)
    names = (onu.serial, onu.description, onu.name, onu.mac, customer.label if customer else "")
    return any(f" {fold(name)}".find(f" {text}") >= 0 for name in names)


def _olt_page(olt_id: int) -> str:
    return reverse("olt", args=[olt_id])


def _onu_page(onu_id: int) -> str:
    return reverse("onu", args=[onu_id])


@require_safe
@for_users
def search_page(request: HttpRequest) -> HttpResponse:
    text, scope = tidy(request.GET.get("q", "")), scope_of(request.user)
    found = find(text, scope, lines=PAGE_LINES)
    if page := find_page(text, found, scope):
        return redirect(page)
    return render(
        request, "search/search.html", {"here": "search", "now": timezone.now(), "found": found, "searched": text}
    )


@require_safe
@for_users
def search_suggestions(request: HttpRequest) -> HttpResponse:
    found = find(tidy(request.GET.get("q", "")), scope_of(request.user), lines=SUGGESTION_LINES)
    return render(request, "search/suggestions.html", {"found": found})
