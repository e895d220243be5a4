"""The form of the fourth step: which ready-made jobs, how often, and what that costs this OLT."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from facho.dashboard.templatetags.facho_words import length_of_time
from facho.execution_coordinator.feasibility import (
    JobCost,
    OltSize,
    is_live,
    judge_choice,
    load_job_costs,
    members_of,
    safe_minimum_seconds,
    words_of,
)
from facho.polling.domain.feasibility import NICE_INTERVALS_SECONDS
from facho.polling.vendors.definition import Definition, Job
from facho.snmp_jobs.ready_made import JOB_NAMES

DEFAULT_ONUS = 500
MAX_ONUS = 20_000
SECONDS_PER_HOUR = 3_600
HOURS_PER_DAY = 24


@dataclass(frozen=True, slots=True)
class JobRow:
    """A job with its inputs and cost; a chain member runs at its master's interval."""

    name: str
    job: Job
    chosen: forms.BoundField
    every: forms.BoundField | None
    is_chosen: bool
    runs_per_hour: float
    cost: JobCost
    seconds_per_hour: float
    minimum_seconds: int
    is_live: bool

    @property
    def is_member(self) -> bool:
        return self.job.chain_of is not None

    @property
    def runs_per_day(self) -> float:
        """Set only for jobs that run less than once an hour."""
        return self.runs_per_hour * HOURS_PER_DAY


@dataclass(frozen=True, slots=True)
class Bill:
    rows: list[JobRow]
    minutes_per_hour: float
    percent: float
    fits: bool
    words: list[str]
    is_measured: bool

    @property
    def width(self) -> float:
        """Width of the bar in percent."""
        return round(min(self.percent, 100.0), 1)


class JobsForm(forms.Form):
    onus = forms.IntegerField(
        label=gettext_lazy("Approximate number of ONUs"), min_value=1, max_value=MAX_ONUS, initial=DEFAULT_ONUS
    )

    def __init__(self, *args: Any, definition: Definition, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.definition = definition
        for job in definition.jobs:
            self.fields[_ticked(job)] = forms.BooleanField(label=name_of(job), required=False, initial=True)
            if job.chain_of is None:
                self.fields[_every(job)] = forms.TypedChoiceField(
                    label=_("%(job)s: every") % {"job": name_of(job)},
                    choices=_intervals(definition, job),
                    coerce=int,
                    initial=job.interval_seconds,
                )

    def clean(self) -> dict[str, Any]:
        values = super().clean() or {}
        for job in self.definition.jobs:
            if job.chain_of and values.get(_ticked(job)) and not values.get(f"job_{job.chain_of}"):
                master = name_of(self.definition.job(job.chain_of))
                self.add_error(
                    _ticked(job), _('It runs right after "%(master)s": choose that one too.') % {"master": master}
                )
        if not any(values.get(_ticked(job)) for job in self.definition.jobs):
            self.add_error(None, _("Choose at least one job: without any, nothing is read."))
        return values

    def intervals(self) -> dict[str, int]:
        """Return the chosen jobs with their interval in seconds; a member has its master's."""
        values = self._values()
        chosen = [job for job in self.definition.jobs if values[_ticked(job)]]
        return {job.slug: values[f"every_{job.chain_of or job.slug}"] for job in chosen}

    def bill(self, name: str, *, round_trip_seconds: float) -> Bill:
        """Sum up the cost of the choice; invalid inputs are ignored."""
        values = self._values()
        costs = load_job_costs(self.definition, OltSize(values["onus"], round_trip_seconds))
        found = judge_choice(name, self.definition, self.intervals(), costs)
        rows = list(self._rows(costs))
        return Bill(
            rows,
            minutes_per_hour=found.judged.minutes_per_hour,
            percent=found.judged.share * 100,
            fits=found.judged.fits,
            words=[] if found.judged.fits else list(words_of(found))[1:],
            is_measured=any(row.cost.is_measured for row in rows),
        )

    def _values(self) -> dict[str, Any]:
        """Return the submitted values, or the suggested ones where they are missing or invalid."""
        suggested = {name: field.initial for name, field in self.fields.items()}
        return {**suggested, **getattr(self, "cleaned_data", {})} if self.is_bound else suggested

    def _rows(self, costs: Mapping[str, JobCost]) -> Iterator[JobRow]:
        masters = [job for job in self.definition.jobs if job.chain_of is None]
        for master in masters:
            for job in (master, *members_of(self.definition, master.slug)):
                cost = costs[job.slug]
                values = self._values()
                is_chosen, seconds = bool(values[_ticked(job)] and values[_ticked(master)]), values[_every(master)]
                yield JobRow(
                    name=name_of(job),
                    job=job,
                    chosen=self[_ticked(job)],
                    every=self[_every(job)] if job is master else None,
                    is_chosen=is_chosen,
                    runs_per_hour=SECONDS_PER_HOUR / seconds,
                    cost=cost,
                    seconds_per_hour=cost.seconds_per_hour(seconds) if is_chosen else 0.0,
                    minimum_seconds=safe_minimum_seconds(self.definition, [job]),
                    is_live=is_live(self.definition, job),
                )


def name_of(job: Job) -> str:
    """Translate the name of a ready-made job; jobs of the operator's own definitions keep theirs."""
    return _(job.name) if job.name in JOB_NAMES else job.name


def _ticked(job: Job) -> str:
    return f"job_{job.slug}"


def _every(job: Job) -> str:
    return f"every_{job.slug}"


def _intervals(definition: Definition, master: Job) -> list[tuple[int, str]]:
    """Offer the usual intervals, none shorter than the job and its chain allow."""
    minimum = safe_minimum_seconds(definition, [master, *members_of(definition, master.slug)])
    offered = {seconds for seconds in NICE_INTERVALS_SECONDS if seconds >= minimum} | {master.interval_seconds}
    return [(seconds, length_of_time(seconds)) for seconds in sorted(offered)]
