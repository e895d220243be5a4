"""What the lists of outages, events and violations share: narrowing by OLT and time, and pages beside a row."""

from typing import Any
from urllib.parse import urlencode

from django import forms
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from facho.accounts.scope import OltScope
from facho.hosts.models import Olt
from facho.onus.timeline import Cursor, read_cursor

ROWS_PER_PAGE = 50
CURSOR = "cursor"


class TimelineFilter(forms.Form):
    """An OLT that the reader may see, and a span of time; what cannot be meant is said and narrows nothing."""

    olt = forms.ChoiceField(label=_("OLT"), required=False)
    after = forms.DateTimeField(label=_("From"), required=False, widget=forms.DateTimeInput({"type": "datetime-local"}))
    before = forms.DateTimeField(label=_("To"), required=False, widget=forms.DateTimeInput({"type": "datetime-local"}))

    def __init__(self, data: Any, scope: OltScope) -> None:
        super().__init__(data, auto_id="filter-%s", label_suffix="")
        olts = scope.narrow(Olt.objects.order_by("name"), "").values_list("id", "name")
        field = self.fields["olt"]
        if isinstance(field, forms.ChoiceField):
            field.choices = [("", _("all")), *((str(pk), name) for pk, name in olts)]

    @property
    def chosen(self) -> dict[str, Any]:
        """What was filled in and can be meant."""
        self.full_clean()
        return {name: value for name, value in self.cleaned_data.items() if value not in ("", None)}

    @property
    def query(self) -> str:
        """The choices as the beginning of an address of the same list."""
        given = {name: value for name in self.fields if (value := self.data.get(name))}
        return f"{urlencode(given)}&" if given else ""


def cursor_of(request: HttpRequest) -> Cursor | None:
    """Return where the page begins; what is no cursor begins with the latest."""
    try:
        return read_cursor(request.GET.get(CURSOR, ""))
    except ValueError:
        return None
