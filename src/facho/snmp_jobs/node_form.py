"""The form of a node: a chained job needs its master on the same OLT, and no OLT is asked too often."""

from typing import TYPE_CHECKING, Any

from django import forms
from django.utils.text import capfirst
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from facho.hosts.admin_pages import without_secrets
from facho.snmp_jobs.interval_field import IntervalField
from facho.snmp_jobs.models import SnmpJob, Workflow, WorkflowNode
from facho.snmp_jobs.safety import check_node

if TYPE_CHECKING:
    _NodeModelForm = forms.ModelForm[WorkflowNode]
else:
    _NodeModelForm = forms.ModelForm  # Django's forms take type parameters in their stubs only


class NodeForm(_NodeModelForm):
    """What an operator decides about a node; OLT and job are chosen when it is made."""

    interval_seconds = IntervalField(label=capfirst(gettext_lazy("interval")))

    class Meta:
        model = WorkflowNode
        fields = ["workflow", "job", "enabled", "interval_seconds", "priority"]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        workflow = self.fields.get("workflow")
        if isinstance(workflow, forms.ModelChoiceField):
            workflow.queryset = Workflow.objects.select_related("olt").defer(*without_secrets()).order_by("olt__name")

    def clean(self) -> dict[str, Any]:
        """Find the master of a chained job, and refuse what would hurt the OLT."""
        values = super().clean() or {}
        job, workflow = values.get("job"), values.get("workflow")
        if isinstance(job, SnmpJob) and isinstance(workflow, Workflow) and job.master_job_id:
            self._chain(job, workflow)
        if values.get("enabled") and not self.errors:
            self._check_pace(values)
        return values

    def _chain(self, job: SnmpJob, workflow: Workflow) -> None:
        master = WorkflowNode.objects.filter(workflow=workflow, job_id=job.master_job_id).first()
        if master is None:
            self.add_error(
                "job", _('It runs after "%s", which this OLT does not have: add that first.') % job.master_job
            )
            return
        self.instance.is_chain_node, self.instance.master_node = True, master

    def _check_pace(self, values: dict[str, Any]) -> None:
        """Check the node as it will be; where OLT and job cannot be chosen any more, they are the stored ones."""
        stored = self.instance
        node = WorkflowNode(
            pk=stored.pk,
            workflow=values.get("workflow") or stored.workflow,
            job=values.get("job") or stored.job,
            interval_seconds=values["interval_seconds"],
            master_node=stored.master_node,
        )
        try:
            check_node(node)
        except forms.ValidationError as error:
            self.add_error("interval_seconds", error)
