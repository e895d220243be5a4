"""The form of a pause: it begins now unless someone says otherwise, and its end comes after its start."""

from typing import TYPE_CHECKING, Any

from django import forms
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from facho.hosts.inventory import stored_olts
from facho.hosts.models import Pause

if TYPE_CHECKING:
    _PauseModelForm = forms.ModelForm[Pause]
else:
    _PauseModelForm = forms.ModelForm  # Django's forms take type parameters in their stubs only


class PauseForm(_PauseModelForm):
    """What an operator decides about a time without polling."""

    class Meta:
        model = Pause
        fields = ["olt", "starts_at", "ends_at", "note"]
        help_texts = {"olt": gettext_lazy("Empty: everything.")}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["starts_at"].initial = timezone.now
        olt = self.fields["olt"]
        if isinstance(olt, forms.ModelChoiceField):
            olt.queryset = stored_olts()

    def clean(self) -> dict[str, Any]:
        """Refuse an end that is no end."""
        values = super().clean() or {}
        starts_at, ends_at = values.get("starts_at"), values.get("ends_at")
        if starts_at and ends_at and ends_at <= starts_at:
            self.add_error("ends_at", _("The end has to come after the start."))
        return values
