"""Saves a job given as plain values by the same rules as the admin's form: what programs write is checked no less."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db import transaction
from django.forms import inlineformset_factory, model_to_dict

from facho.snmp_jobs.chains import carry_chain
from facho.snmp_jobs.job_form import JobForm, OidForm, OidFormSet
from facho.snmp_jobs.models import SnmpJob, SnmpJobOid
from facho.snmp_jobs.store import change_schedule_of_job

Faults = dict[str, list[str]]
_SCHEDULE = {"hours_from", "hours_to", "cadence"}
_Oids = inlineformset_factory(SnmpJob, SnmpJobOid, form=OidForm, formset=OidFormSet, extra=0, can_delete=True)


class JobRefused(Exception):
    """Nothing was saved; faults are listed by field, those of a read by its position."""

    def __init__(self, faults: Faults) -> None:
        super().__init__(faults)
        self.faults = faults


@transaction.atomic
def save_job(
    job: SnmpJob, values: Mapping[str, Any], reads: Sequence[Mapping[str, Any]] | None, *, now: datetime
) -> SnmpJob:
    """Save a new or known job and exactly these reads of it; None leaves them as they are."""
    form = JobForm({**model_to_dict(job), **values}, instance=job)
    is_valid = form.is_valid()
    rows = _rows(job, reads)
    prefix = _Oids.get_default_prefix()
    data: dict[str, Any] = {
        f"{prefix}-TOTAL_FORMS": len(rows),
        f"{prefix}-INITIAL_FORMS": sum("id" in row for row in rows),
    }
    for number, row in enumerate(rows):
        data |= {f"{prefix}-{number}-{name}": value for name, value in row.items()}
    reads_form = _Oids(data, instance=form.instance)
    if not (reads_form.is_valid() and is_valid):
        raise JobRefused(_faults(form, reads_form))
    saved = form.save()
    reads_form.save()
    carry_to_nodes(form, now=now)
    return saved


def carry_to_nodes(form: JobForm, *, now: datetime) -> int:
    """Let the nodes of a known job that was saved follow its new hours, cadence and master.

    Returns how many follow a new chain.
    """
    job, before, changed = form.instance, form.initial, set(form.changed_data)
    if _SCHEDULE & changed:
        hours = before["hours_from"], before["hours_to"]
        change_schedule_of_job(job, cadence=before["cadence"], hours=hours, now=now)
    is_chain_changed = "master_job" in changed or (job.master_job_id and "priority" in changed)
    return carry_chain([job], now=now) if is_chain_changed else 0


def _rows(job: SnmpJob, reads: Sequence[Mapping[str, Any]] | None) -> list[dict[str, Any]]:
    """Merge the given reads with the stored ones; stored reads not named any more are marked for deletion."""
    stored = {(row.column_key, row.oid): row for row in job.oids.all()} if job.pk else {}
    if reads is None:
        return [{**model_to_dict(row), "id": row.pk} for row in stored.values()]
    kept = [_laid_over(position, read, stored) for position, read in enumerate(reads)]
    named = {row.get("id") for row in kept}
    gone = [{**model_to_dict(row), "id": row.pk, "DELETE": "on"} for row in stored.values() if row.pk not in named]
    # Django reads the forms of stored rows first.
    return sorted([*kept, *gone], key=lambda row: "id" not in row)


def _laid_over(position: int, read: Mapping[str, Any], stored: dict[tuple[str, str], SnmpJobOid]) -> dict[str, Any]:
    row = stored.pop((read.get("column_key", ""), read.get("oid", "")), None)
    return {"position": position, **read, **({"id": row.pk} if row else {})}


def _faults(form: JobForm, reads: Any) -> Faults:
    faults: Faults = {_name(field): [str(each) for each in errors] for field, errors in form.errors.items()}
    for number, errors in enumerate(reads.errors):
        for field, sentences in errors.items():
            faults[f"oids.{number}.{_name(field)}".rstrip(".")] = [str(each) for each in sentences]
    told = list(reads.non_form_errors())
    if told:
        faults["oids"] = told
    return faults


def _name(field: str) -> str:
    return "" if field == "__all__" else field
