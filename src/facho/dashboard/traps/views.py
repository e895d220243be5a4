"""Traps: what OLTs said and what was read then, senders that are not OLTs, and OLTs that never send any."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy
from django.views.decorators.http import require_POST, require_safe

from facho.accounts.audit import Action, record
from facho.accounts.roles import Role, role_of
from facho.accounts.scope import scope_of
from facho.dashboard.shared.page import (
    ROWS_PER_PAGE,
    TimelineFilter,
    choice_field,
    cursor_of,
    for_admins,
    for_users,
    is_part,
    read_id,
    render_part_or_page,
)
from facho.hosts.store import OLT_SECRETS
from facho.onus.timeline import load_rows
from facho.polling.domain.hints import READABLE, Meaning
from facho.polling.domain.onu_state import PortPlace
from facho.polling.vendors.loader import GENERIC_KEY, load_definitions
from facho.polling.vendors.notifications import NO_RULES
from facho.traps.models import Meanings, OltTraps, Outcomes, Trap, TrapReceiver, TrapSender, TrapSwitch
from facho.traps.store import is_switched_on, load_silent_olts, switch

SHOWN_SENDERS = 20
SHOWN_SILENT = 20
# A receiver says every ten seconds that it lives.
LIVES_FOR = timedelta(seconds=40)
_LOOKS = {Outcomes.CONFIRMED: "up", Outcomes.NOT_CONFIRMED: "late"}


class TrapFilter(TimelineFilter):
    lookups = {
        "olt": "olt_id",
        "meaning": "meaning",
        "outcome": "outcome",
        "after": "heard_at__gte",
        "before": "heard_at__lt",
    }
    meaning = choice_field(_("What"), Meanings.choices, pgettext_lazy("traps", "all"))
    outcome = choice_field(
        _("Read"), [choice for choice in Outcomes.choices if choice[0]], pgettext_lazy("traps", "all")
    )
    field_order = ("olt", "meaning", "outcome", "after", "before")


@dataclass(frozen=True, slots=True)
class TrapLine:
    """One line of the table; names and serials may come from the device."""

    trap: Trap
    what: str
    outcome: str | Promise
    look: str
    # How long after it was heard the state was read, in seconds.
    delay: float | None

    @property
    def definition_line(self) -> str:
        """What gives an unknown trap a meaning, in the language of definitions."""
        base, _, number = self.trap.oid.rpartition(".")
        return f"- {{meaning: other, base: {base}, names: {{{number}: my_trap}}}}"

    @property
    def definition_file(self) -> str:
        return f"definitions/{self.trap.olt.vendor or GENERIC_KEY}.yaml"

    @property
    def meanings(self) -> str:
        return ", ".join(Meaning)


@require_safe
@for_users
def traps_page(request: HttpRequest) -> HttpResponse:
    scope, now = scope_of(request.user), timezone.now()
    form, cursor = TrapFilter(request.GET, scope), cursor_of(request)
    traps = Trap.objects.select_related("olt", "onu").defer(*OLT_SECRETS)
    page = load_rows(form.narrow(scope.narrow(traps)), "heard_at", cursor, ROWS_PER_PAGE)
    context = {
        "here": "events",
        "now": now,
        "form": form,
        "is_first": cursor is None,
        "page": page,
        "rows": trap_lines(page.rows),
    }
    if not is_part(request):
        context |= _receiver_context(request, now)
    return render_part_or_page(request, "traps/list.html", "traps/traps.html", context)


def _receiver_context(request: HttpRequest, now: datetime) -> dict[str, Any]:
    is_admin = role_of(request.user) is Role.ADMIN
    context: dict[str, Any] = {
        "is_on": is_switched_on(),
        "bind": settings.FACHO_TRAPS_BIND,
        "may_switch": is_admin,
        "listens": TrapReceiver.objects.filter(seen_at__gt=now - LIVES_FOR).exists(),
    }
    if is_admin and scope_of(request.user).is_everything:
        # Senders of ignored traps, latest first, and OLTs that never sent a trap.
        senders = TrapSender.objects.select_related("olt").defer(*OLT_SECRETS)[:SHOWN_SENDERS]
        silent = [(olt, enabling_lines(olt.vendor)) for olt in load_silent_olts(SHOWN_SILENT)]
        context |= {"senders": list(senders), "silent": silent}
    return context


@require_POST
@for_admins
def traps_switch(request: HttpRequest) -> HttpResponse:
    """Switch the receiver on or off; it follows within seconds."""
    is_on = request.POST.get("is_on") == "yes"
    with transaction.atomic():
        switch(is_on=is_on)
        row = TrapSwitch.objects.get()
        record(request.user, row, Action.CHANGED, _("switched on") if is_on else _("switched off"))
    messages.success(request, _("Traps are received from now on.") if is_on else _("Traps are no longer received."))
    # From the first steps of an OLT, return there.
    olt_id = read_id(request.POST.get("olt", ""))
    return redirect("olt-setup", olt_id) if olt_id else redirect("traps")


def trap_lines(traps: list[Trap]) -> list[TrapLine]:
    return [
        TrapLine(
            trap,
            _describe(trap),
            trap.get_outcome_display() if _is_read(trap) else "",
            _LOOKS.get(Outcomes(trap.outcome), "unknown"),
            max((trap.settled_at - trap.heard_at).total_seconds(), 0.0) if trap.settled_at else None,
        )
        for trap in traps
    ]


def load_said(which: Mapping[str, int], count: int) -> list[TrapLine]:
    """Load what was said lately of an OLT, a port or an ONU; one query."""
    return trap_lines(list(Trap.objects.filter(**which).order_by("-heard_at", "-id")[:count]))


def load_said_of_port(olt_id: int, place: PortPlace, count: int) -> list[TrapLine]:
    """Load what was said lately of a PON port and of ONUs at it; one query."""
    frame, slot, port = place
    return load_said(
        {"olt_id": olt_id, "pon_port__frame": frame, "pon_port__slot": slot, "pon_port__port": port}, count
    )


def load_offer(olt_id: int, vendor: str) -> dict[str, Any]:
    """Load whether traps are heard, from this OLT too, and what to type to have them; two queries."""
    return {
        "is_on": is_switched_on(),
        "has_spoken": OltTraps.objects.filter(olt_id=olt_id).exists(),
        "bind": settings.FACHO_TRAPS_BIND,
        "lines": enabling_lines(vendor),
    }


def enabling_lines(vendor: str) -> tuple[str, ...]:
    """Return the commands that switch traps on at an OLT of a family; none if they are not known."""
    definition = load_definitions().get(vendor)
    rules = definition.notifications if definition else NO_RULES
    port = int(settings.FACHO_TRAPS_BIND.rpartition(":")[2])
    # Words to replace: which of this machine's addresses an OLT reaches is not known, and a community is a secret.
    return rules.enabling(address="ADDRESS", port=port, community="COMMUNITY")


def _is_read(trap: Trap) -> bool:
    """Whether the place of a trap is known and a read of states tells whether it is right."""
    return trap.meaning in READABLE and bool(trap.onu_id or trap.pon_port_id)


def _describe(trap: Trap) -> str:
    meaning = str(trap.get_meaning_display())
    return str(_("%(what)s: over")) % {"what": meaning} if trap.is_end else meaning
