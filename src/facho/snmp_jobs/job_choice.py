"""Jobs to choose from: the ready-made ones have the same names for every vendor, so the vendor is said too."""

from typing import TYPE_CHECKING

from django import forms

from facho.snmp_jobs.models import SnmpJob

if TYPE_CHECKING:
    _JobField = forms.ModelChoiceField[SnmpJob]
else:
    _JobField = forms.ModelChoiceField  # generic in its stubs only


class JobChoiceField(_JobField):
    """A choice of jobs that can be told apart."""

    def label_from_instance(self, obj: SnmpJob) -> str:
        """Name the job, and the vendor that it is for."""
        return job_title(obj.name, obj.vendor)


def job_title(name: str, vendor: str) -> str:
    """Write a job's name with the vendor that it is for; one for every OLT has its name alone."""
    return f"{name} ({vendor})" if vendor else name
