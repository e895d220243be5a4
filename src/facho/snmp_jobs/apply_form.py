"""The form that chooses OLTs for jobs: one by one, by group, or all that the jobs fit."""

from collections.abc import Iterable
from itertools import groupby
from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from facho.hosts.models import Olt, OltGroup


class ApplyForm(forms.Form):
    """Which OLTs shall have the jobs."""

    everything = forms.BooleanField(label=gettext_lazy("All OLTs listed here"), required=False)
    groups = forms.ModelMultipleChoiceField(
        OltGroup.objects.none(),
        label=gettext_lazy("Groups of OLTs"),
        required=False,
        widget=forms.CheckboxSelectMultiple,
    )
    olts = forms.MultipleChoiceField(label=gettext_lazy("OLTs"), required=False, widget=forms.CheckboxSelectMultiple)

    def __init__(self, *args: Any, fitting: Iterable[Olt], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._fitting = sorted(fitting, key=lambda olt: (_group_name(olt), olt.name))
        groups = {olt.group_id for olt in self._fitting if olt.group_id}
        if groups:
            self.fields["groups"].queryset = OltGroup.objects.filter(pk__in=groups)  # type: ignore[attr-defined]
        else:
            del self.fields["groups"]
        self.fields["olts"].choices = [  # type: ignore[attr-defined]
            (name or _("no group"), [(str(olt.pk), olt.name) for olt in olts])
            for name, olts in groupby(self._fitting, key=_group_name)
        ]

    def clean(self) -> dict[str, Any]:
        """Gather the OLTs from all three ways."""
        values = super().clean() or {}
        groups, ids = set(values.get("groups") or ()), set(values.get("olts") or ())
        chosen = [olt for olt in self._fitting if values.get("everything") or olt.group in groups or str(olt.pk) in ids]
        if not chosen:
            raise forms.ValidationError(_("Choose at least one OLT."))
        return {**values, "chosen": sorted(chosen, key=lambda olt: olt.name)}


def _group_name(olt: Olt) -> str:
    return olt.group.name if olt.group else ""
