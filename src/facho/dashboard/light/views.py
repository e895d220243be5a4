"""What light shows about the fibre: each finding with the plot and the numbers it rests on."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from statistics import median
from typing import Any

import numpy as np
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils import timezone
from django.utils.formats import number_format
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext_lazy
from django.views.decorators.http import require_safe
from numpy.typing import NDArray

from facho.accounts.scope import scope_of
from facho.dashboard.onu.list import listed_onus
from facho.dashboard.onu.names import code_of, event_rows
from facho.dashboard.onu.plot import PlotCurve, curve_of, draw_light, light_of, question_of
from facho.dashboard.shared.page import (
    ROWS_PER_PAGE,
    TimelineFilter,
    choice_field,
    cursor_of,
    for_users,
    render_part_or_page,
)
from facho.dashboard.shared.plot_range import MAX_COMPARED, PlotRange
from facho.onus.events import all_events
from facho.onus.history import PortSeries, Series
from facho.onus.history_models import Floats, Ints, Metric
from facho.onus.history_read_model import load_port_history
from facho.onus.models import Onu, PonPort
from facho.onus.timeline import load_rows
from facho.onus.words import RunStateChoice
from facho.plant.days import LIMIT_DBM, NOISY_DAYS, OLT_LIMIT_DBM, NormalDays, load_light_days
from facho.plant.models import FindingKinds, LightFinding
from facho.plant.store import all_findings, describe_finding, explain_finding, explain_hint, hit_of, lost_so_far
from facho.polling.domain.light import FLAPS_A_DAY, row_medians

# The plot of a step shows so much before it and after it, that of anything slower so many days.
AROUND_STEP = timedelta(hours=6)
BEFORE_DAYS = timedelta(days=10)
STEPS = (FindingKinds.COMMON_STEP, FindingKinds.STEP)
# What other ONUs may have lost, too.
LOSSES = (*STEPS, FindingKinds.BRANCH_DECAY, FindingKinds.DECAY)
# Decays with a line of their own, and the limit that it falls to.
_LIMITS = {FindingKinds.DECAY: LIMIT_DBM, FindingKinds.SENDER: OLT_LIMIT_DBM}
# A forecast that is less sure than this runs out of its plot.
LONGEST_FORECAST = timedelta(days=60)
# Judged by how the light moved within each day.
UNSTEADY = (FindingKinds.NOISE, FindingKinds.FLAPPING)
# What stands before and after in numbers: medians of this time.
LEVEL_OF_STEP = timedelta(hours=1)
LEVEL_OF_DAYS = timedelta(days=3)
EVENT_LINES = 20
_Window = tuple[float, float]


class LightFilter(TimelineFilter):
    lookups = {"olt": "pon_port__olt_id", "kind": "kind", "after": "since__gte", "before": "since__lt"}
    kind = choice_field(gettext_lazy("What"), FindingKinds.choices, pgettext_lazy("findings", "all"))
    state = choice_field(
        gettext_lazy("State"),
        [("open", pgettext_lazy("findings", "open")), ("over", pgettext_lazy("findings", "over"))],
        pgettext_lazy("findings", "all"),
    )
    field_order = ("olt", "kind", "state", "after", "before")

    def narrow(self, findings: QuerySet[LightFinding]) -> QuerySet[LightFinding]:
        if state := self.chosen.get("state"):
            findings = findings.filter(ended_at__isnull=state == "open")
        return super().narrow(findings)


@dataclass(frozen=True, slots=True)
class LightLine:
    """One finding as a line; `members` are the ONUs that were hit, with what each lost."""

    finding: LightFinding
    sentence: str
    evidence: str
    hint: str
    confidence: str
    members: list[tuple[Onu, str, str]]


@require_safe
@for_users
def light_page(request: HttpRequest) -> HttpResponse:
    scope, now = scope_of(request.user), timezone.now()
    form, cursor = LightFilter(request.GET, scope), cursor_of(request)
    page = load_rows(form.narrow(scope.narrow(all_findings(), "pon_port__olt")), "since", cursor, ROWS_PER_PAGE)
    context = {
        "here": "light",
        "now": now,
        "form": form,
        "is_first": cursor is None,
        "page": page,
        "rows": [light_line(finding, now) for finding in page.rows],
    }
    return render_part_or_page(request, "light/list.html", "light/light.html", context)


def light_line(finding: LightFinding, now: datetime) -> LightLine:
    """Write a finding for people; its ONUs are in `finding.hit`."""
    members = [
        (row.onu, code_of(row.onu), number_format(abs(row.size_db), 2) if row.size_db else "")
        for row in hit_of(finding)
    ]
    return LightLine(
        finding,
        describe_finding(finding, now),
        explain_finding(finding),
        explain_hint(finding),
        # Rounded up it would be certain, which nothing is.
        f"{min(round(100 * finding.confidence), 99)} %" if finding.confidence else _("unknown"),
        members,
    )


def load_port_findings(port: PonPort, now: datetime, count: int) -> list[LightLine]:
    """Load the latest findings of a port; two queries."""
    return [light_line(each, now) for each in all_findings().filter(pon_port=port)[:count]]


def load_onu_findings(onu: Onu, now: datetime, count: int) -> list[LightLine]:
    """Load the latest findings that an ONU had a part in; two queries."""
    hit = LightFinding.objects.filter(members__onu=onu, members__is_hit=True).values("id")
    its = all_findings().filter(Q(onu=onu) | Q(id__in=hit))
    return [light_line(each, now) for each in its[:count]]


def describe_normal(onu: Onu, days: NormalDays | None) -> str:
    """Write what is normal for an ONU by its own past, and how far from it it is now; no query."""
    if days is None:
        return _("What is normal for this ONU is unknown: seven whole days of its light have to be known.")
    normal = days.light
    numbers = {
        "normal": number_format(normal.dbm, 2),
        "range": number_format(normal.range_db, 1),
        "days": normal.days,
    }
    text = _("Normal for this ONU: %(normal)s dBm, give or take %(range)s dB, by %(days)s days of its past.") % numbers
    reading = getattr(onu, "reading", None)
    if reading is None or reading.rx_power_dbm is None or reading.run_state != RunStateChoice.ONLINE:
        return text
    away = reading.rx_power_dbm - normal.dbm
    if abs(away) <= normal.range_db:
        return " ".join([text, _("It is normal now.")])
    words = _("Now it is %s dB below that.") if away < 0 else _("Now it is %s dB above that.")
    return " ".join([text, words % number_format(abs(away), 1)])


@require_safe
@for_users
def finding_page(request: HttpRequest, finding_id: int) -> HttpResponse:
    findings, now = scope_of(request.user).narrow(all_findings(), "pon_port__olt"), timezone.now()
    finding = get_object_or_404(findings, id=finding_id)
    context = {
        "here": "light",
        "now": now,
        "finding": finding,
        "line": light_line(finding, now),
        "evidence": load_evidence(finding, now),
        "is_step": finding.kind in STEPS,
        "is_loss": finding.kind in LOSSES,
        "by_day": _days_of(finding, now),
    }
    return render(request, "light/finding.html", context)


def load_evidence(finding: LightFinding, now: datetime) -> dict[str, Any]:
    onu_ids = [finding.onu_id] if finding.onu_id else [row.onu_id for row in hit_of(finding)]
    shown, forecast = _range(finding, now), _forecast(finding, now)
    question, upstream = question_of(shown), question_of(shown, Metric.OLT_RX_POWER)
    down, up = load_port_history(finding.pon_port_id, question), load_port_history(finding.pon_port_id, upstream)
    onus = {onu.id: onu for onu in listed_onus().filter(id__in=onu_ids)}
    rows = {onu_id: number for number, onu_id in enumerate(down.onu_ids.tolist())}
    windows = _windows(finding, shown)
    is_hit = np.isin(down.onu_ids, onu_ids)
    others = _median(down.average[~is_hit])
    then = Onu.objects.filter(pon_port_id=finding.pon_port_id, is_present=True, first_seen_at__lte=finding.since)
    unseen = then.exclude(id__in=[*down.onu_ids.tolist(), *onu_ids]).count()
    events = all_events().filter(onu_id__in=onu_ids, at__gte=shown.start, at__lte=shown.end).order_by("-at", "-id")
    marked = event_rows(events[:EVENT_LINES])
    curves = [curve_of("rx", _("The other ONUs of the port, their median"), "dBm", Series(down.at, *others), question)]
    drawn = [onus[onu_id] for onu_id in onu_ids if onu_id in onus and onu_id in rows][:MAX_COMPARED]
    for number, onu in enumerate(drawn, start=1):
        row = rows[onu.id]
        light = Series(down.at, down.average[row], down.lowest[row], down.highest[row])
        curves.append(light_of(onu, f"other-{number}", light, question))
    if finding.kind == FindingKinds.SENDER:
        # That the ONU itself receives as before is half of what is said.
        curves += [
            curve_of("olt-rx", _("The OLT receives"), "dBm", Series(up.at, *layers), upstream)
            for layers in zip(
                *(layer[np.isin(up.onu_ids, onu_ids)] for layer in (up.average, up.lowest, up.highest)), strict=True
            )
        ]
    drawn_range = shown
    if forecast is not None:
        drawn_range = replace(shown, end=max(shown.end, forecast["shown_until"]))
        curves += forecast["curves"]
    lost_db = abs(finding.size_db if finding.kind in STEPS else lost_so_far(finding))
    return {
        "plot": draw_light(drawn_range, curves, events=marked),
        "forecast": forecast,
        "levels": [_levels(onus[onu_id], down, up, windows) for onu_id in onu_ids if onu_id in onus],
        "others": _count_others(down, ~is_hit, windows, lost_db, unseen),
        "others_before_dbm": _level(down.at, others[0], windows[0]),
        "others_after_dbm": _level(down.at, others[0], windows[1]),
        "events": marked,
    }


def _days_of(finding: LightFinding, now: datetime) -> dict[str, Any] | None:
    """The days that unsteady light was judged by, the last one first, each with the query of its plot; one query."""
    if finding.kind not in UNSTEADY or finding.onu_id is None:
        return None
    until = finding.judged_at.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    days = [day for day in load_light_days(finding.onu_id, finding.pon_port_id) if day.starts_at < until]
    last = until - timedelta(days=NOISY_DAYS)
    is_noise = finding.kind == FindingKinds.NOISE
    noises = [
        [day.noise_db for day in days if day.noise_db is not None and (day.starts_at >= last) is is_now]
        for is_now in (True, False)
    ]
    return {
        "is_noise": is_noise,
        "rows": [
            {
                "day": day,
                "query": PlotRange(day.starts_at, day.starts_at + timedelta(days=1), now).query,
                # What the sentence is about.
                "counts": day.starts_at >= last if is_noise else (day.jumps or 0) >= FLAPS_A_DAY,
            }
            for day in reversed(days)
            if day.starts_at >= finding.since - BEFORE_DAYS
        ],
        "least": FLAPS_A_DAY,
        "noise_now_db": median(noises[0]) if noises[0] else None,
        "noise_before_db": median(noises[1]) if noises[1] else None,
        "days_before": len(noises[1]),
    }


def _forecast(finding: LightFinding, now: datetime) -> dict[str, Any] | None:
    """The line through a decay, and from its end on the range in which it crosses the limit; None for other kinds."""
    limit_dbm, level = _LIMITS.get(FindingKinds(finding.kind)), finding.level_dbm
    if limit_dbm is None or level is None:
        return None
    fitted, fallen = finding.judged_at - finding.since, lost_so_far(finding)
    soonest, likely, latest = (
        timedelta(days=days or 0) for days in (finding.days_soonest, finding.days_likely, finding.days_latest)
    )
    is_open = finding.ended_at is None and latest > timedelta(0) and finding.judged_at + latest > now
    ahead = min(latest, LONGEST_FORECAST) if is_open else timedelta(0)
    # From the beginning of the fall to the end of the line, then in steps that a curve can be drawn through.
    days = np.concatenate([[-fitted / timedelta(days=1), 0.0], np.linspace(0, ahead / timedelta(days=1), 40)[1:]])
    slow, line, fast = (
        np.where(days <= 0, level - fallen * np.minimum(days, 0) / max(fitted / timedelta(days=1), 1e-9), beyond)
        for beyond in (_towards(level, limit_dbm, days, within) for within in (latest, likely, soonest))
    )
    at = finding.judged_at.timestamp() + days * 86_400
    limit = np.full(2, limit_dbm)
    ends = np.array([at[0], at[-1]])
    curves = [
        PlotCurve("forecast", _("The line of its fall and its forecast"), "dBm", at, line, np.minimum(line, fast), slow)
    ]
    if limit_dbm != LIMIT_DBM:
        words = _("The OLT's limit")
        curves.append(PlotCurve("limit", words, "dBm", ends, limit, limit, limit, is_faint=True))
    return {
        "curves": curves,
        "shown_until": finding.judged_at + ahead,
        "level_dbm": level,
        "level_at": finding.judged_at,
        "rate_db": finding.size_db,
        "limit": number_format(limit_dbm, 0),
        "crosses": [finding.judged_at + each for each in (soonest, likely, latest)] if is_open else [],
        "is_finished": finding.ended_at is not None,
    }


def _towards(level_dbm: float, limit_dbm: float, days: Floats, within: timedelta) -> Floats:
    """Fall in a line from the level to the limit within a time, and stay there."""
    share = np.minimum(np.maximum(days, 0) / max(within / timedelta(days=1), 1e-9), 1.0)
    return np.asarray(level_dbm + (min(limit_dbm, level_dbm) - level_dbm) * share)


def _count_others(
    down: PortSeries, rows: NDArray[np.bool_], windows: tuple[_Window, _Window], lost_db: float, unseen: int
) -> dict[str, int]:
    """Compare the levels of the other ONUs, by the rule that decides who was well: less than a third was lost."""
    before, after = (row_medians(down.average[rows][:, (down.at >= start) & (down.at < end)]) for start, end in windows)
    lost = before - after
    is_read = np.isfinite(lost)
    kept = int((np.abs(lost[is_read]) < lost_db / 3).sum())
    read, unread = int(is_read.sum()), int((~is_read).sum()) + unseen
    return {"all": read + unread, "kept": kept, "lost_some": read - kept, "unread": unread}


def _median(values: Floats) -> list[Floats]:
    is_known = np.isfinite(values).any(axis=0)
    middle = np.full(values.shape[1], np.nan)
    if is_known.any():
        middle[is_known] = np.nanmedian(values[:, is_known], axis=0)
    return [middle, middle, middle]


def _range(finding: LightFinding, now: datetime) -> PlotRange:
    """The period of the plot: around a step, or all of what is slower with the days before it."""
    if finding.kind in STEPS:
        return PlotRange(finding.since - AROUND_STEP, min(finding.since + AROUND_STEP, now), now)
    return PlotRange(finding.since - BEFORE_DAYS, min(finding.ended_at or now, now), now)


def _windows(finding: LightFinding, shown: PlotRange) -> tuple[_Window, _Window]:
    """From when to when the levels before and after are taken, in epoch seconds."""
    since = finding.since.timestamp()
    if finding.kind in STEPS:
        return (since - LEVEL_OF_STEP.total_seconds(), since), (since, since + LEVEL_OF_STEP.total_seconds())
    length = LEVEL_OF_DAYS.total_seconds()
    return (since - length, since), (shown.end.timestamp() - length, shown.end.timestamp())


def _level(at: Ints, values: Floats, window: _Window) -> float | None:
    inside = values[(at >= window[0]) & (at < window[1]) & np.isfinite(values)]
    return float(np.median(inside)) if inside.size else None


def _levels(onu: Onu, down: PortSeries, up: PortSeries, windows: tuple[_Window, _Window]) -> dict[str, Any]:
    """Say what an ONU received before and after, and how much one reading differed from the next; None is unknown."""
    readings, noise = [], None
    for series in (down, up):
        found = np.flatnonzero(series.onu_ids == onu.id)
        its = series.average[found[0]] if found.size else np.full(len(series.at), np.nan)
        readings += [_level(series.at, its, window) for window in windows]
        if series is down:
            before = its[(series.at >= windows[0][0]) & (series.at < windows[0][1])]
            moves = np.abs(np.diff(before[np.isfinite(before)]))
            noise = float(moves.mean() / 1.128) if moves.size >= 5 else None
    before_dbm, after_dbm, olt_before_dbm, olt_after_dbm = readings
    return {
        "onu": onu,
        "code": code_of(onu),
        "before_dbm": before_dbm,
        "after_dbm": after_dbm,
        "lost_db": _difference(before_dbm, after_dbm),
        "noise_db": noise,
        "olt_lost_db": _difference(olt_before_dbm, olt_after_dbm),
    }


def _difference(before: float | None, after: float | None) -> float | None:
    return None if before is None or after is None else before - after
