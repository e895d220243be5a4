"""The form of a job, and what it reads as the rows below it: the two together have to be safe."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from django import forms
from django.utils.translation import gettext as _

from facho.snmp_jobs.models import Cadence, SnmpJob, SnmpJobOid
from facho.snmp_jobs.safety import check_job

if TYPE_CHECKING:
    _JobModelForm = forms.ModelForm[SnmpJob]
    _OidFormSet = forms.BaseInlineFormSet[SnmpJobOid, SnmpJob, forms.ModelForm[SnmpJobOid]]
else:
    # Django's forms and formsets take type parameters in their stubs only.
    _JobModelForm, _OidFormSet = forms.ModelForm, forms.BaseInlineFormSet


class JobForm(_JobModelForm):
    """What an operator decides about a job; its hours come in pairs, and only where they can hold."""

    class Meta:
        model = SnmpJob
        fields = "__all__"

    def clean(self) -> dict[str, Any]:
        """Refuse hours that nothing would keep."""
        values = super().clean() or {}
        problem = _hours_problem(values)
        if problem:
            self.add_error("hours_to" if values.get("hours_from") else "hours_from", problem)
        return values


def _hours_problem(values: Mapping[str, Any]) -> str:
    hours = [values.get("hours_from"), values.get("hours_to")]
    if hours == [None, None]:
        return ""
    if None in hours:
        return _("Give both hours, or none.")
    if values.get("master_job"):
        return _("A chained job runs with its master: give the hours there.")
    if values.get("cadence") == Cadence.FIXED_DELAY:
        return _("Hours need runs on the grid: choose that cadence, or no hours.")
    return ""


class OidFormSet(_OidFormSet):
    """The OIDs of a job; cleaned after the job's own form, so the job is as it will be saved."""

    def clean(self) -> None:
        """Refuse a job that would read its columns too often, or in a chain where they may not be."""
        super().clean()
        # A row that goes away may be wrong, and the others are checked all the same.
        staying = [form for form in self.forms if not form.cleaned_data.get("DELETE")]
        if any(form.errors for form in staying):
            return
        reads = [form.cleaned_data.get("column_key") or form.cleaned_data.get("oid") for form in staying]
        check_job(self.instance, [read for read in reads if read])
