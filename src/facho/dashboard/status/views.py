"""The public page for customers: how each zone is, without a log-in, and without a name, a number or a place beyond it.

Strangers ask as often as they like, so what they see is some seconds old and the same for all: the web process sends it
from memory, and one request at a time renews it.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from http import HTTPStatus
from threading import Lock

from django.conf import settings
from django.db.models import Count, Q, TextChoices
from django.http import Http404, HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.utils import timezone, translation
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_safe

from facho.hosts.models import Pause
from facho.onus.models import Outage
from facho.onus.words import OutageScopes, RunStateChoice
from facho.plant.models import OnuAttachment

STATUS_PATH = "/status/"
KEPT_FOR = timedelta(seconds=15)
# Which ONUs are in which zone is expensive to load and changes rarely.
ONUS_KEPT_FOR = timedelta(minutes=10)
# The line of a zone with fewer could identify a household.
FEWEST_ONUS = 5
# The largest; what is beyond them changes no line.
MOST_OUTAGES = 200
SHOWN_AHEAD = timedelta(days=7)
MOST_WINDOWS = 3


class ZoneState(TextChoices):
    """How a zone is; the worst first."""

    OUTAGE = "outage", _("outage")
    PROBLEMS = "problems", _("problems")
    MAINTENANCE = "maintenance", _("maintenance")
    NORMAL = "normal", _("normal")


@dataclass(frozen=True, slots=True)
class ZoneOnus:
    name: str
    by_olt: Counter[int]


@dataclass(frozen=True, slots=True)
class ZoneTrouble:
    """ONUs of a zone that an outage took down, and since when."""

    out: int
    since: datetime


@dataclass(frozen=True, slots=True)
class ZoneStatus:
    name: str
    state: ZoneState
    since: datetime | None
    windows: tuple[tuple[datetime, datetime], ...]


@dataclass(frozen=True, slots=True)
class NetworkStatus:
    zones: tuple[ZoneStatus, ...] | None
    taken_at: datetime


class _Kept:
    """What this process keeps between requests."""

    def __init__(self) -> None:
        self.building = Lock()
        self.clear()

    def clear(self) -> None:
        self.pages: dict[str, tuple[datetime, bytes]] = {}
        self.network: NetworkStatus | None = None
        self.onus: dict[int, ZoneOnus] = {}
        self.onus_at: datetime | None = None

    def page(self, language: str, now: datetime, *, longest: timedelta) -> bytes | None:
        made_at, page = self.pages.get(language, (now, None))
        return page if abs(now - made_at) < longest else None


kept = _Kept()


@require_safe
def status_page(request: HttpRequest) -> HttpResponse:
    """Show how the zones are; 404 unless the operator wants this page."""
    if not settings.FACHO_STATUS_PAGE:
        raise Http404
    now, language = timezone.now(), translation.get_language_from_request(request)
    page = kept.page(language, now, longest=KEPT_FOR)
    if page is None and not kept.building.acquire(blocking=False):
        # Another thread is building it: serve the old page instead of waiting.
        page = kept.page(language, now, longest=2 * KEPT_FOR)
        if page is None:
            kept.building.acquire()
    if page is None:
        try:
            page = kept.page(language, now, longest=KEPT_FOR) or _build(request, language, now)
        finally:
            kept.building.release()
    return _answer(page, language)


def kept_status(request: HttpRequest) -> HttpResponse | None:
    """Return the page from memory, for the event loop; None when it has to be made."""
    if not settings.FACHO_STATUS_PAGE or request.method not in ("GET", "HEAD"):
        return None
    language = translation.get_language_from_request(request)
    page = kept.page(language, timezone.now(), longest=KEPT_FOR)
    return _answer(page, language) if page is not None else None


def _answer(page: bytes, language: str) -> HttpResponse:
    headers = {
        "Cache-Control": f"public, max-age={KEPT_FOR.seconds}",
        "Content-Language": language,
        "Vary": "Accept-Language",
    }
    return HttpResponse(page, status=HTTPStatus.OK, headers=headers)


def _build(request: HttpRequest, language: str, now: datetime) -> bytes:
    if kept.network is None or abs(now - kept.network.taken_at) >= KEPT_FOR:
        kept.network = load_network(now)
    network = kept.network
    # Users who are logged in get the same page as strangers.
    with translation.override(language), timezone.override(None):
        context = {"network": network, "seconds": 4 * KEPT_FOR.seconds}
        page = render_to_string("status/status.html", context, request).encode()
    kept.pages[language] = network.taken_at, page
    return page


def load_network(now: datetime) -> NetworkStatus:
    """Load how the zones are; three queries, and once in a while one more."""
    if kept.onus_at is None or abs(now - kept.onus_at) >= ONUS_KEPT_FOR:
        kept.onus, kept.onus_at = _load_onus(), now
    is_open = Outage.objects.filter(ended_at__isnull=True).order_by("-affected", "id")
    outages = list(is_open[:MOST_OUTAGES])
    if any(outage.scope == OutageScopes.NETWORK for outage in outages):
        return NetworkStatus(None, now)
    silent = {outage.olt_id or 0: outage.started_at for outage in outages if outage.scope == OutageScopes.OLT}
    windows = list(Pause.objects.filter(ends_at__gt=now, starts_at__lt=now + SHOWN_AHEAD).order_by("starts_at"))
    trouble = _load_trouble([outage for outage in outages if outage.scope in (OutageScopes.PON, OutageScopes.CARD)])
    lines = [
        judge_zone(zone, trouble.get(zone_id), silent, windows, now)
        for zone_id, zone in kept.onus.items()
        if zone.by_olt.total() >= FEWEST_ONUS
    ]
    order = list(ZoneState)
    return NetworkStatus(tuple(sorted(lines, key=lambda line: (order.index(line.state), line.name.casefold()))), now)


def judge_zone(
    zone: ZoneOnus,
    trouble: ZoneTrouble | None,
    silent: Mapping[int, datetime],
    windows: Iterable[Pause],
    now: datetime,
) -> ZoneStatus:
    """Say how a zone is: half of it down is an outage, and an OLT that does not answer may be one."""
    begins = [began_at for olt_id, began_at in silent.items() if olt_id in zone.by_olt]
    planned = [pause for pause in windows if pause.olt_id is None or pause.olt_id in zone.by_olt]
    if trouble is not None and trouble.out * 2 >= zone.by_olt.total():
        state, since = ZoneState.OUTAGE, trouble.since
    elif trouble is not None or begins:
        state, since = ZoneState.PROBLEMS, min([*begins, *([trouble.since] if trouble else [])])
    else:
        is_running = any(pause.starts_at <= now for pause in planned)
        state, since = ZoneState.MAINTENANCE if is_running else ZoneState.NORMAL, None
    times = dict.fromkeys((pause.starts_at, pause.ends_at) for pause in planned)
    return ZoneStatus(zone.name, state, since, tuple(times)[:MOST_WINDOWS])


def _load_onus() -> dict[int, ZoneOnus]:
    """Count the ONUs attached by hand or by file to boxes of a zone, by OLT; a disabled OLT reports nothing."""
    rows = (
        OnuAttachment.objects.filter(onu__is_present=True, onu__olt__enabled=True, box__zone__isnull=False)
        .values_list("box__zone_id", "box__zone__name", "onu__olt_id")
        .annotate(onus=Count("onu_id"))
        .order_by()
    )
    zones: dict[int, ZoneOnus] = {}
    for zone_id, name, olt_id, onus in rows:
        zones.setdefault(zone_id, ZoneOnus(name, Counter())).by_olt[olt_id] = onus
    return zones


def _load_trouble(outages: Iterable[Outage]) -> dict[int, ZoneTrouble]:
    """Count the ONUs that these outages took down, by zone; looks at their ports alone."""
    places, begins = Q(), {}
    for outage in outages:
        begins[outage.pk] = outage.started_at
        place = Q(onu__pon_port__frame=outage.frame, onu__pon_port__slot=outage.slot, onu__olt_id=outage.olt_id)
        places |= place & Q(onu__pon_port__port=outage.port) if outage.scope == OutageScopes.PON else place
    if not begins:
        return {}
    rows = (
        OnuAttachment.objects.filter(places, onu__is_present=True, onu__olt__enabled=True, box__zone__isnull=False)
        .filter(onu__reading__run_state=RunStateChoice.OFFLINE, onu__reading__outage_id__in=begins)
        .values_list("box__zone_id", "onu__reading__outage_id")
        .annotate(onus=Count("onu_id"))
        .order_by()
    )
    zones: dict[int, ZoneTrouble] = {}
    for zone_id, outage_id, onus in rows:
        before = zones.get(zone_id)
        since = min(begins[outage_id], before.since) if before else begins[outage_id]
        zones[zone_id] = ZoneTrouble(onus + (before.out if before else 0), since)
    return zones
