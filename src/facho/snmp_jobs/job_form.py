"""What a job reads, as the rows below its form: the two together have to be safe."""

from typing import TYPE_CHECKING

from django import forms

from facho.snmp_jobs.models import SnmpJob, SnmpJobOid
from facho.snmp_jobs.safety import check_job

if TYPE_CHECKING:
    _OidFormSet = forms.BaseInlineFormSet[SnmpJobOid, SnmpJob, forms.ModelForm[SnmpJobOid]]
else:
    _OidFormSet = forms.BaseInlineFormSet  # Django's formsets take type parameters in their stubs only


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
