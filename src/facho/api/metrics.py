"""Answers Prometheus at /metrics: every process reads the same rows, so every process gives the same answer."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from ipaddress import IPv6Address, ip_address

from django.http import HttpResponse
from django.utils import timezone
from django.utils.decorators import method_decorator
from django.views.decorators.cache import never_cache
from prometheus_client.core import CollectorRegistry, Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.permissions import BasePermission
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request
from rest_framework.views import APIView

from facho.accounts.scope import EVERYTHING, OltScope, scope_of
from facho.api.metrics_family import Family, build_metric
from facho.api.metrics_olts import OLT_FAMILIES
from facho.api.metrics_polling import POLLING_FAMILIES
from facho.api.metrics_read_model import load_snapshot
from facho.api.metrics_runs import RUN_FAMILIES
from facho.api.permissions import ReadOrOperate

FAMILIES: tuple[Family, ...] = (*POLLING_FAMILIES, *RUN_FAMILIES, *OLT_FAMILIES)

# A proxy on this machine makes everyone look local; the usual ones add at least one of these.
FORWARDING_HEADERS = ("forwarded", "via", "x-forwarded-", "x-real-ip")


class FromThisMachine(BasePermission):
    """Lets in who connects from loopback, unless a proxy speaks for someone else."""

    def has_permission(self, request: Request, view: APIView) -> bool:
        """Believe the address of the connection, and no header but to refuse."""
        is_forwarded = any(name.lower().startswith(FORWARDING_HEADERS) for name in request.headers)
        return not is_forwarded and is_loopback(request.META.get("REMOTE_ADDR", ""))


class WhateverIsAccepted(DefaultContentNegotiation):
    """Has one form for an answer and one for a refusal, and no argument about either."""

    def select_renderer(
        self, request: Request, renderers: Iterable[BaseRenderer], format_suffix: str | None = None
    ) -> tuple[BaseRenderer, str]:
        """Return the only renderer, which writes refusals."""
        (renderer,) = renderers
        return renderer, renderer.media_type


@method_decorator(never_cache, name="dispatch")
class MetricsView(APIView):
    """The metrics in Prometheus's text format, for this machine, for a token of any role, and for who is logged in."""

    permission_classes = [FromThisMachine | ReadOrOperate]
    content_negotiation_class = WhateverIsAccepted
    # Not a part of the API's document: Prometheus knows the format.
    schema = None

    def get(self, request: Request) -> HttpResponse:
        """Return every series as of now; a token or a login names no OLT that it may not see."""
        scope = scope_of(request.user) if request.user.is_authenticated else EVERYTHING
        return HttpResponse(render_metrics(timezone.now(), scope), content_type=CONTENT_TYPE_PLAIN_0_0_4)


def render_metrics(now: datetime, scope: OltScope = EVERYTHING) -> bytes:
    """Write all series as of a moment."""
    registry = CollectorRegistry()
    registry.register(_Scrape(now, scope))
    return generate_latest(registry)


def is_loopback(address: str) -> bool:
    """Tell whether a connection comes from this machine; one without an address does not say so."""
    try:
        ip = ip_address(address)
    except ValueError:
        return False
    mapped = ip.ipv4_mapped if isinstance(ip, IPv6Address) else None
    return (mapped or ip).is_loopback


@dataclass(frozen=True, slots=True)
class _Scrape:
    """One look at the database, in the form that the library asks for."""

    now: datetime
    scope: OltScope

    def collect(self) -> Iterable[Metric]:
        snapshot = load_snapshot(self.now, self.scope)
        return (build_metric(family, snapshot) for family in FAMILIES)
