"""The tree of a port as it was inferred or corrected: its drawing, and the form that corrects it."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.formats import number_format
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_POST, require_safe

from facho.accounts.scope import scope_of
from facho.dashboard.onu.list import OnuLine, listed_onus, rows_of
from facho.dashboard.shared.page import for_operators, for_users
from facho.dashboard.shared.table import posted_ids
from facho.hosts.store import OLT_SECRETS
from facho.onus.models import OnuEvent, Outage, PonPort
from facho.onus.words import EventKinds
from facho.plant import tree
from facho.plant.models import AttachmentSources, LightFinding, OnuAttachment, OnuBox, TreeCorrection
from facho.plant.store import all_findings, describe_finding
from facho.polling.domain.light import COMMON_ONUS
from facho.polling.domain.outages import POWER_LOST

# The drawing's own units: an ONU takes a dot, and so many stand in a row.
DOT, DOTS_IN_A_ROW, LEFT = 22, 16, 46


def load_port_tree(port: PonPort, now: datetime) -> dict[str, Any] | None:
    """Draw which ONUs seem to share a box, the nearest box first; None while it is unknown. Eight queries."""
    placed = tree.load_tree(port.pk)
    if not placed:
        return None
    lines = _load_lines(placed)
    boxes, top = [], 24
    for box in placed:
        boxes.append(_box(box, lines, top))
        top += 30 + DOT * -(-len(box.onu_ids) // DOTS_IN_A_ROW)
    return {
        "boxes": boxes,
        "events": max(box.events for box in placed),
        "height": top,
        "changes": _changes(port, lines),
        "rests_on": _events(port, now),
    }


def _load_lines(placed: Sequence[tree.PlacedBox]) -> dict[int, OnuLine]:
    onu_ids = [onu_id for box in placed for onu_id in box.onu_ids]
    return {line.id: line for line in rows_of(listed_onus().filter(id__in=onu_ids))}


def _changes(port: PonPort, lines: dict[int, OnuLine]) -> list[dict[str, Any]]:
    """Load the corrections, the last first, with the ONUs that each names."""
    corrections = TreeCorrection.objects.filter(pon_port=port).select_related("made_by").order_by("-made_at", "-id")
    changes = []
    for each in corrections:
        codes = [lines[onu_id].code for onu_id in each.together if onu_id in lines]
        words = _("in one box: %s") % (", ".join(codes[:4]) + (" …" if len(codes) > 4 else ""))
        who = each.made_by.get_username() if each.made_by else ""
        onu_ids = {*each.together, *each.apart}
        changes.append({"id": each.id, "made_at": each.made_at, "made_by": who, "words": words, "onu_ids": onu_ids})
    return changes


def _events(port: PonPort, now: datetime) -> list[dict[str, Any]]:
    """What the boxes were inferred from, the last first; each leads to its plot or its course."""
    shared = all_findings().filter(pon_port=port, kind__in=tree.SHARED_KINDS).order_by("-since")[: tree.TREE_EVENTS]
    found: list[dict[str, Any]] = [
        {
            "at": each.since,
            "words": describe_finding(each, now),
            "url": reverse("light-finding", args=[each.id]),
            "cause": each,
        }
        for each in shared
    ]
    for cut in tree.load_cuts(port.pk):
        if cut.affected >= COMMON_ONUS:
            words = ngettext("%s ONU down together", "%s ONUs down together", cut.affected) % cut.affected
            address = reverse("outage", args=[cut.pk])
            found.append({"at": cut.started_at, "words": words, "url": address, "cause": cut})
    return sorted(found, key=lambda each: each["at"], reverse=True)[: tree.TREE_EVENTS]


def load_box_evidence(port: PonPort, number: int, now: datetime) -> dict[str, Any] | None:
    """Load what a box rests on; None if the tree has no such box any more. Ten queries and one for each cut."""
    placed = tree.load_tree(port.pk)
    mine = next((box for box in placed if box.number == number), None)
    if mine is None:
        return None
    lines = _load_lines(placed)
    here, others = set(mine.onu_ids) & lines.keys(), lines.keys() - set(mine.onu_ids)
    taken = [(event, *_who(port, event["cause"], lines)) for event in _events(port, now)]
    sure = dict(OnuBox.objects.filter(pon_port=port).values_list("onu_id", "confidence"))
    attached = OnuAttachment.objects.filter(onu_id__in=here).exclude(source=AttachmentSources.INFERRED)
    sources = {each.onu_id: f"{each.box.name} ({each.get_source_display()})" for each in attached.select_related("box")}
    drawn = {box.number: _box(box, lines, 0) for box in placed}
    me = drawn.pop(number)
    return {
        "name": me["name"],
        "words": me["words"],
        "events": [
            {
                **event,
                "hit": len(hit & here),
                "well": len(well & here),
                "unread": len(here - hit - well),
                "others_hit": len(hit & others),
                "others_well": len(well & others),
            }
            for event, hit, well in taken
        ],
        "onus": [
            {
                "onu": lines[onu_id],
                # In how many of the events it took part, and how sure its place is.
                "hit": sum(onu_id in hit for _event, hit, _well in taken),
                "well": sum(onu_id in well for _event, _hit, well in taken),
                "sure": f"{min(round(100 * sure[onu_id]), 99)} %" if onu_id in sure else _("unknown"),
                "source": sources.get(onu_id, ""),
            }
            for onu_id in mine.onu_ids
            if onu_id in lines
        ],
        "changes": [change for change in _changes(port, lines) if change["onu_ids"] & here],
        "neighbours": [(box["name"], box["words"]) for box in drawn.values()],
    }


def _who(port: PonPort, cause: LightFinding | Outage, lines: dict[int, OnuLine]) -> tuple[set[int], set[int]]:
    """Return which ONUs an event hit, and which were seen to be well; one query."""
    if isinstance(cause, LightFinding):
        members = dict(cause.members.values_list("onu_id", "is_hit"))
        hit = {onu_id for onu_id, is_hit in members.items() if is_hit}
        return hit, members.keys() - hit
    downs = OnuEvent.objects.filter(
        pon_port=port, kind=EventKinds.DOWN, at__gte=cause.started_at, at__lte=cause.started_at + tree.ONE_CUT
    )
    down = dict(downs.order_by("-at").values_list("onu_id", "cause"))
    hit = {onu_id for onu_id, why in down.items() if why not in POWER_LOST}
    return hit, {onu_id for onu_id, line in lines.items() if onu_id not in down and line.state == "online"}


@require_safe
@for_users
def tree_box(request: HttpRequest, pon_port_id: int, number: int) -> HttpResponse:
    ports = scope_of(request.user).narrow(PonPort.objects.filter(is_known=True).select_related("olt"))
    port, now = get_object_or_404(ports.defer(*OLT_SECRETS), id=pon_port_id), timezone.now()
    evidence = load_box_evidence(port, number, now)
    if evidence is None:
        raise Http404
    return render(request, "light/tree_box.html", {"here": "olts", "now": now, "port": port, "box": evidence})


def _box(box: tree.PlacedBox, lines: dict[int, OnuLine], top: int) -> dict[str, Any]:
    its = [lines[onu_id] for onu_id in box.onu_ids if onu_id in lines]
    metres = sorted(line.distance_m for line in its if line.distance_m is not None)
    distance = f"{number_format(metres[0])}–{number_format(metres[-1])} m" if metres else _("distance unknown")  # noqa: RUF001 a range
    sure = _("corrected by hand") if box.is_told else _("%s %% sure") % min(round(100 * box.confidence), 99)
    return {
        "number": box.number,
        "name": box.name or _("box %s") % (box.number + 1),
        "words": f"{len(its)} ONU · {distance} · {sure}",
        "is_told": box.is_told,
        "y": top + 18,
        "dots": [
            {
                "onu": line,
                "x": LEFT + DOT * (number % DOTS_IN_A_ROW),
                "y": top + 18 + DOT * (number // DOTS_IN_A_ROW),
                "look": line.light.value if line.state == "online" and line.light.value != "good" else line.state,
                "tip": _tip(line),
            }
            for number, line in enumerate(its)
        ],
    }


def _tip(line: OnuLine) -> str:
    power = "" if line.power_dbm is None or line.is_old_light else f"{number_format(line.power_dbm, 2)} dBm"
    metres = f"{line.distance_m} m" if line.distance_m is not None else ""
    return " · ".join(filter(None, (line.code, line.name, line.state_words, power, metres)))


@require_POST
@for_operators
def tree_correct(request: HttpRequest, pon_port_id: int) -> HttpResponse:
    """Put ONUs into another box or one of their own, or take a correction back; operators and administrators only."""
    port = get_object_or_404(scope_of(request.user).narrow(PonPort.objects.filter(is_known=True)), id=pon_port_id)
    removed = request.POST.get("remove", "")
    if removed:
        found = TreeCorrection.objects.filter(pon_port=port, id=int(removed)) if removed.isdecimal() else None
        correction = found.first() if found is not None else None
        if correction is not None:
            tree.remove_correction(correction, who=request.user)
            messages.success(request, _("Correction removed."))
    else:
        target = request.POST.get("target", "")
        try:
            onu_ids = posted_ids(request)
            tree.correct_tree(
                port, onu_ids, int(target) if target.isdecimal() else None, who=request.user, now=timezone.now()
            )
            messages.success(request, _("Tree corrected. This overrides what is inferred until it is removed."))
        except tree.NoSuchBox as problem:
            messages.error(request, str(problem))
    return redirect(f"{reverse('port', args=(port.olt_id, port.frame, port.slot, port.port))}#tree")
