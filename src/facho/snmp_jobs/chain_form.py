"""The chain of a master as rows below its form: which jobs run after it, in which order, and on what condition."""

from typing import TYPE_CHECKING, Any

from django import forms
from django.utils.text import capfirst
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from facho.snmp_jobs.chains import possible_members
from facho.snmp_jobs.job_choice import JobChoiceField
from facho.snmp_jobs.models import MAX_PRIORITY, SnmpJob
from facho.snmp_jobs.safety import check_job, reads_of

if TYPE_CHECKING:
    _MemberModelForm = forms.ModelForm[SnmpJob]
    _ChainFormSet = forms.BaseInlineFormSet[SnmpJob, SnmpJob, forms.ModelForm[SnmpJob]]
else:
    # Django's forms and formsets take type parameters in their stubs only.
    _MemberModelForm, _ChainFormSet = forms.ModelForm, forms.BaseInlineFormSet


class ChainMemberForm(_MemberModelForm):
    """One job of a chain; a new row takes a job that is in no chain yet."""

    member = JobChoiceField(SnmpJob.objects.none(), label=capfirst(gettext_lazy("job")), required=False)
    priority = forms.IntegerField(
        label=capfirst(gettext_lazy("order")),
        min_value=0,
        max_value=MAX_PRIORITY,
        initial=50,
        help_text=gettext_lazy("0 to 100; within a chain the smaller runs first."),
    )
    leaves = forms.BooleanField(label=capfirst(gettext_lazy("take out")), required=False)

    class Meta:
        model = SnmpJob
        fields = ["priority", "chain_condition"]

    field_order = ["member", "priority", "chain_condition", "leaves"]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        member = self.fields["member"]
        if isinstance(member, forms.ModelChoiceField) and self.instance.pk:
            member.queryset = SnmpJob.objects.filter(pk=self.instance.pk)
            member.initial, member.disabled = self.instance, True

    def clean(self) -> dict[str, Any]:
        """Turn a row for a new member into a change of that job."""
        values = super().clean() or {}
        member = values.get("member")
        if not self.instance.pk and isinstance(member, SnmpJob):
            self.instance = member
        elif not self.instance.pk:
            self.add_error("member", _("Choose the job that runs after this one."))
        return values

    def save(self, commit: bool = True) -> SnmpJob:
        """Write the order, or let the job run by itself from now on."""
        if self.cleaned_data.get("leaves"):
            self.instance.master_job = None
        return super().save(commit)


class ChainFormSet(_ChainFormSet):
    """All members of a chain; each has to be safe at the pace of its master."""

    def add_fields(self, form: _MemberModelForm, index: int | None) -> None:
        """Offer to a new row the jobs that could join."""
        super().add_fields(form, index)
        member = form.fields["member"]
        if isinstance(member, forms.ModelChoiceField) and not member.disabled:
            member.queryset = possible_members(self.instance)

    def clean(self) -> None:
        """Refuse a chain of a chain, a job that is named twice, and one that may not be read so often."""
        super().clean()
        staying = [form for form in self.forms if form.has_changed() or form.initial.get("id")]
        members = [form for form in staying if not form.errors and not form.cleaned_data.get("leaves")]
        if members and self.instance.master_job_id:
            raise forms.ValidationError(_("A job that runs after another one has no chain of its own."))
        for number, form in enumerate(members):
            if any(form.instance == before.instance for before in members[:number]):
                form.add_error("member", _("This job is in the chain already."))
                continue
            form.instance.master_job = self.instance
            try:
                check_job(form.instance, reads_of(form.instance))
            except forms.ValidationError as error:
                form.add_error("member", error)
