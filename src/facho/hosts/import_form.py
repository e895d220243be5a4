"""The form that takes an inventory as CSV, by file or by paste. What was given is never shown again."""

from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

# Ten thousand OLTs; a file that is larger is another file.
MAX_BYTES = 1024 * 1024


class UnshownText(forms.Textarea):
    """A field that is always empty when shown: the text holds secrets."""

    def format_value(self, value: Any) -> str:
        """Forget what was given."""
        return ""


class ImportForm(forms.Form):
    """One file, or its text."""

    file = forms.FileField(
        label=gettext_lazy("CSV file"),
        required=False,
        allow_empty_file=True,
        widget=forms.ClearableFileInput(attrs={"accept": ".csv,text/csv"}),
    )
    text = forms.CharField(
        label=gettext_lazy("or its text"),
        required=False,
        strip=False,
        widget=UnshownText(attrs={"rows": 8, "cols": 80, "spellcheck": "false", "autocomplete": "off"}),
    )

    def clean(self) -> dict[str, Any]:
        """Take exactly one of the two."""
        values = super().clean() or {}
        file, text = values.get("file"), values.get("text")
        if bool(file) == bool(text):
            raise forms.ValidationError(_("Give a file or its text, and only one of them."))
        content = file.read(MAX_BYTES + 1) if file else str(text).encode()
        if len(content) > MAX_BYTES:
            raise forms.ValidationError(_("This is too large to be an inventory."))
        return {**values, "content": content}
