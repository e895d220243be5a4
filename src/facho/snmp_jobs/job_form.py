"""The form of a job with what it reads, which have to be safe together; programs save jobs by the same rules.

A chain is declared between jobs; `carry_chain` applies it to the nodes of those jobs, in order.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from django import forms
from django.db import transaction
from django.db.models import Q, QuerySet
from django.forms import inlineformset_factory, model_to_dict
from django.utils.text import capfirst
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from facho.hosts.inventory import stored_olts
from facho.hosts.models import Brand
from facho.polling.domain.execution_state import QueryType
from facho.polling.domain.schedule import MAX_INTERVAL_SECONDS, format_interval, parse_interval
from facho.polling.snmp.oid import format_oid, parse_oid
from facho.polling.vendors.definition import IDENTITY
from facho.polling.vendors.loader import load_definitions
from facho.polling.vendors.vocabulary import Scope
from facho.snmp_jobs.application import brands_of, own_slug
from facho.snmp_jobs.models import Cadence, SnmpJob, SnmpJobOid, WorkflowNode
from facho.snmp_jobs.safety import check_job, find_live_below
from facho.snmp_jobs.store import change_schedule_of_job, give_first_slots, take_off_grid


class IntervalField(forms.Field):
    """Takes 90s, 5m, 1h, 1d and plain seconds; shows the largest units."""

    default_error_messages = {
        "invalid": gettext_lazy("Enter seconds, or a number with s, m, h or d, such as 90s, 5m or 1h."),
        "too_long": gettext_lazy("An interval is at most a year."),
    }

    def __init__(self, **options: Any) -> None:
        super().__init__(help_text=gettext_lazy("Seconds, or a number with s, m, h or d: 90s, 5m, 1h."), **options)

    def to_python(self, value: Any) -> int | None:
        if value in self.empty_values:
            return None
        try:
            seconds = parse_interval(str(value))
        except ValueError as error:
            raise forms.ValidationError(self.error_messages["invalid"], code="invalid") from error
        if seconds > MAX_INTERVAL_SECONDS:
            raise forms.ValidationError(self.error_messages["too_long"], code="too_long")
        return seconds

    def prepare_value(self, value: Any) -> Any:
        """Show stored seconds formatted, and typed text unchanged."""
        return format_interval(value) if isinstance(value, int) else value


MAX_NAME = 100
# More names than this do not help to find the nodes.
MOST_NAMED = 5


def _default(name: str) -> Any:
    """Return the model's default: a field that is declared by hand does not know it."""
    return SnmpJob._meta.get_field(name).get_default()  # type: ignore[union-attr]  # a column, not a relation


def vendor_choices() -> list[tuple[str, str]]:
    return [("", _("every OLT")), *((key, _(each.title)) for key, each in load_definitions().items())]


class JobForm(forms.ModelForm):  # type: ignore[type-arg]  # generic in its stubs only
    """What an operator decides about a job; its hours come in pairs, and only where they can hold."""

    vendor = forms.ChoiceField(
        label=capfirst(gettext_lazy("vendor definition")), choices=vendor_choices, required=False
    )
    interval_seconds = IntervalField(
        label=capfirst(gettext_lazy("suggested interval")), initial=_default("interval_seconds")
    )
    retry_delay_seconds = IntervalField(
        label=capfirst(gettext_lazy("delay between attempts")), initial=_default("retry_delay_seconds")
    )

    class Meta:
        model = SnmpJob
        fields = "__all__"  # noqa: DJ007 every column is an operator's to set
        help_texts = {"brand": gettext_lazy("The job is for OLTs of this brand. Empty: for every brand.")}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        master = self.fields["master_job"]
        if isinstance(master, forms.ModelChoiceField):
            master.queryset = self._masters()

    def _masters(self) -> QuerySet[SnmpJob]:
        """Select what it could run after; with the vendor that was sent, another's job is refused in words."""
        masters = (
            SnmpJob.objects.filter(master_job__isnull=True).exclude(pk=self.instance.pk).order_by("name", "vendor")
        )
        if self.is_bound or not self.instance.vendor:
            return masters
        return masters.filter(Q(vendor__in=["", self.instance.vendor]) | Q(pk=self.instance.master_job_id))

    def clean_master_job(self) -> SnmpJob | None:
        """Refuse a chain of a chain: a master runs by itself."""
        master: SnmpJob | None = self.cleaned_data["master_job"]
        if master and self.instance.pk and self.instance.chain_jobs.exists():
            raise forms.ValidationError(_("Other jobs run after this one: take them out of its chain first."))
        return master

    def clean_brand(self) -> Brand | None:
        """Refuse a brand that would leave the job on OLTs of another one."""
        brand: Brand | None = self.cleaned_data["brand"]
        if brand and self.instance.pk and brand.pk != self.instance.brand_id:
            olts = stored_olts().filter(workflow__nodes__job=self.instance).select_related("model__brand")
            others = [olt.name for olt in olts.order_by("name") if brand.name not in brands_of(olt)]
            if others:
                sentence = _("The job is on OLTs of another brand: %(olts)s. Delete its nodes there first.")
                named = ", ".join([*others[:MOST_NAMED], *(["…"] if others[MOST_NAMED:] else [])])
                raise forms.ValidationError(sentence % {"olts": named}, code="on_other_brands")
        return brand

    def clean(self) -> dict[str, Any]:
        """Refuse hours that nothing would keep, and a chain over two vendors."""
        values = super().clean() or {}
        master, vendor = values.get("master_job"), values.get("vendor")
        if master and vendor and master.vendor not in ("", vendor):
            self.add_error("master_job", _("That job is for another vendor."))
        problem = _hours_problem(values)
        if problem:
            self.add_error("hours_to" if values.get("hours_from") else "hours_from", problem)
        return values


def _hours_problem(values: Mapping[str, Any]) -> str:
    hours = [values.get("hours_from"), values.get("hours_to")]
    if hours == [None, None]:
        return ""
    if None in hours:
        return _("Set both hours, or neither.")
    if values.get("master_job"):
        return _("A chained job runs with its master: give the hours there.")
    if values.get("cadence") == Cadence.FIXED_DELAY:
        return _("Hours need runs on the grid: choose that cadence, or no hours.")
    return ""


class OidForm(forms.ModelForm):  # type: ignore[type-arg]  # generic in its stubs only
    class Meta:
        model = SnmpJobOid
        fields = "__all__"  # noqa: DJ007 every column is an operator's to set

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # In a table the head of the column is no label.
        for field in self.fields.values():
            field.widget.attrs["aria-label"] = field.label

    def clean_oid(self) -> str:
        """Refuse what no device could be asked for, and spell the rest in one way."""
        text: str = self.cleaned_data["oid"]
        try:
            return format_oid(parse_oid(text)) if text else ""
        except ValueError as error:
            raise forms.ValidationError(
                _("An OID is numbers joined by dots, as in 1.3.6.1.2.1.1.3.0."), code="no_oid"
            ) from error


class OidFormSet(forms.BaseInlineFormSet):  # type: ignore[type-arg]  # generic in its stubs only
    """The OIDs of a job; cleaned after the job's own form, so the job is as it will be saved."""

    def clean(self) -> None:
        """Refuse a job that would read its columns too often, or in a chain where they may not be."""
        super().clean()
        # A row that goes away may be wrong, the others are still checked.
        staying = [form for form in self.forms if not form.cleaned_data.get("DELETE")]
        for form in staying:
            self._check_column(form)
            self._check_discovery(form)
            # Refuse an OID above columns that an OLT asks its ONUs for: a walk of it could not spare those offline.
            live = find_live_below(self.instance.vendor, form.cleaned_data.get("oid") or "")
            if live:
                sentence = _("This OID contains %(column)s, which is queried from each ONU: read that column instead.")
                form.add_error("oid", forms.ValidationError(sentence, code="live_below", params={"column": live}))
            self._check_history(form)
        if any(form.errors for form in staying):
            return
        reads = [form.cleaned_data.get("column_key") or form.cleaned_data.get("oid") for form in staying]
        check_job(self.instance, [read for read in reads if read])

    def _check_column(self, form: forms.BaseForm) -> None:
        """Refuse a column that the job's vendor does not have; without a vendor, that no vendor has."""
        key, vendor = form.cleaned_data.get("column_key"), self.instance.vendor
        known = load_definitions()
        families = [known[vendor]] if vendor in known else known.values()
        if key and not any(family.has_column(key) for family in families):
            text = (
                _("The vendor definition has no column %(column)s.")
                if vendor
                else _("No vendor has a column %(column)s.")
            )
            form.add_error("column_key", forms.ValidationError(text, code="no_column", params={"column": key}))

    def _check_discovery(self, form: forms.BaseForm) -> None:
        """Refuse what a discovery would not read: it walks what distinguishes ONUs and shows where they are."""
        read = form.cleaned_data.get("column_key") or form.cleaned_data.get("oid")
        if read and read not in IDENTITY and self.instance.query_type == QueryType.DISCOVERY:
            sentence = _("A discovery reads only %(column)s: put the rest in a job of another type.")
            form.add_error(
                None,
                forms.ValidationError(sentence, code="discovery_reads_serials", params={"column": ", ".join(IDENTITY)}),
            )

    def _check_history(self, form: forms.BaseForm) -> None:
        """Refuse a setting without effect: a job does not decide which ONU columns have a history."""
        key, known = form.cleaned_data.get("column_key"), load_definitions()
        columns = [family.column(key) for family in known.values() if key and family.has_column(key)]
        is_about_onus = any(column.index.scope in (Scope.ONU, Scope.AUTOFIND) for column in columns)
        if form.cleaned_data.get("keeps_history") and is_about_onus:
            sentence = _("Keeping history is optional only for your own OIDs and for columns about the OLT.")
            form.add_error("keeps_history", forms.ValidationError(sentence, code="no_choice"))


def possible_members(master: SnmpJob) -> QuerySet[SnmpJob]:
    """Select the jobs that could run after a master: those that are in no chain and fit its OLTs."""
    free = SnmpJob.objects.filter(master_job__isnull=True, chain_jobs__isnull=True, hours_from__isnull=True)
    fitting = free.filter(Q(vendor__in=["", master.vendor])) if master.vendor else free
    return fitting.exclude(pk=master.pk).order_by("name")


@transaction.atomic
def carry_chain(jobs: Iterable[SnmpJob], *, now: datetime) -> int:
    """Let the nodes of these jobs run after those of their masters, or alone without; returns how many changed."""
    return sum(_carry(job, now) for job in jobs)


def _carry(job: SnmpJob, now: datetime) -> int:
    masters = WorkflowNode.objects.filter(job_id=job.master_job_id, is_chain_node=False) if job.master_job_id else ()
    by_workflow = {master.workflow_id: master for master in masters}
    moved, freed = [], []
    for node in WorkflowNode.objects.filter(job=job).select_related("job"):
        master = by_workflow.get(node.workflow_id)
        before = (node.master_node_id, node.priority)
        node.is_chain_node, node.master_node = master is not None, master
        if master is not None:
            # The order within a chain.
            node.priority = node.job.priority
        if before != (node.master_node_id, node.priority):
            moved.append(node)
            freed += [] if master else [node.pk]
    nodes = WorkflowNode.objects.all()
    # A time of its own would start a member alone.
    take_off_grid(nodes.filter(id__in=[node.pk for node in moved if node.is_chain_node], is_chain_node=False), now)
    nodes.bulk_update(moved, ("is_chain_node", "master_node", "priority"), batch_size=500)
    give_first_slots(nodes.filter(id__in=freed, enabled=True), now)
    return len(moved)


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
    saved: SnmpJob = form.save()
    reads_form.save()
    carry_to_nodes(form, now=now)
    return saved


@transaction.atomic
def give_own_job(node: WorkflowNode) -> SnmpJob:
    """Give a node, and those of its chain, a copy of its job, so that a change of it reaches no other OLT."""
    own = _copy(node, node.master_node.job if node.master_node else None)
    for member in node.chain_nodes.select_related("job", "workflow__olt"):
        _copy(member, own)
    return own


def _copy(node: WorkflowNode, master: SnmpJob | None) -> SnmpJob:
    job, olt = node.job, node.workflow.olt
    reads = list(job.oids.all())
    values = {field.attname: getattr(job, field.attname) for field in SnmpJob._meta.concrete_fields}
    named = f"{job.name[: MAX_NAME - len(olt.name) - 3]} · {olt.name}"[:MAX_NAME]
    values |= {"id": None, "name": named, "slug": own_slug(job.slug, olt.pk), "master_job_id": master and master.pk}
    # What an earlier node of this OLT left behind.
    SnmpJob.objects.filter(vendor=job.vendor, slug=values["slug"], nodes=None).delete()
    copy = SnmpJob.objects.create(**values)
    for read in reads:
        read.pk, read.job = None, copy
    SnmpJobOid.objects.bulk_create(reads)
    WorkflowNode.objects.filter(pk=node.pk).update(job=copy)
    node.job = copy
    return copy


def carry_to_nodes(form: JobForm, *, now: datetime) -> int:
    """Let the nodes of a saved job follow its new hours, cadence and master; returns how many follow a new chain."""
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
    problems = list(reads.non_form_errors())
    if problems:
        faults["oids"] = problems
    return faults


def _name(field: str) -> str:
    return "" if field == "__all__" else field
