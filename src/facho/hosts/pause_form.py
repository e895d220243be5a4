"""The form of a pause: what it holds for is always chosen, it begins now, and its end comes after its start."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from django import forms
from django.utils import timezone
from django.utils.text import capfirst
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from facho.hosts.inventory import stored_olts
from facho.hosts.models import Olt, Pause

if TYPE_CHECKING:
    _PauseModelForm = forms.ModelForm[Pause]
    _OltField = forms.ModelChoiceField[Olt]
else:
    _PauseModelForm, _OltField = forms.ModelForm, forms.ModelChoiceField  # generic in their stubs only

ALL = "all"


class _AllBeforeEach(forms.models.ModelChoiceIterator):  # type: ignore[type-arg]
    """Offers all OLTs as a choice of its own, behind the one that is none."""

    def __iter__(self) -> Iterator[Any]:
        nothing, *olts = super().__iter__()
        yield nothing
        yield ALL, _("All OLTs")
        yield from olts


class PlaceField(_OltField):
    """One OLT, or all of them for None; a choice that nobody made is neither."""

    iterator = _AllBeforeEach

    def clean(self, value: Any) -> Olt | None:
        """Return the OLT; None only for who chose all."""
        return None if value == ALL else super().clean(value)


class PauseForm(_PauseModelForm):
    """What an operator decides about a time without polling."""

    olt = PlaceField(Olt.objects.none(), label=capfirst(gettext_lazy("OLT")))

    class Meta:
        model = Pause
        fields = ["olt", "starts_at", "ends_at", "note"]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["starts_at"].initial = timezone.now
        if self.instance.pk and self.instance.olt_id is None:
            self.initial["olt"] = ALL
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
