"""The workbench for vendor definitions: checks a text, and tries it on a recording; packets leave from commands."""

from typing import Any

from django import forms
from django.core.files.uploadedfile import UploadedFile
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_http_methods

from facho.accounts.scope import OltScope, scope_of
from facho.dashboard.shared.page import for_admins, read_id
from facho.hosts.models import Olt
from facho.polling.snmp.ber import VarBind
from facho.polling.vendors.anonymise import RecordingError, read_recording
from facho.polling.vendors.review import Review, review_text
from facho.polling.vendors.schema import MAX_BYTES
from facho.snmp_get.trial import TrialBounds, TrialLine, describe_gaps, describe_trial, try_on_recording

# The web takes no larger requests.
MAX_RECORDING_BYTES = 2_000_000
PASTED = "definition.yaml"


class WorkbenchForm(forms.Form):
    """A definition, pasted or uploaded, and what to try it on. An uploaded text is shown in place of a pasted one."""

    definition = forms.CharField(
        label=gettext_lazy("Definition"),
        required=False,
        strip=False,
        max_length=MAX_BYTES,
        widget=forms.Textarea(attrs={"rows": 24, "class": "mono", "spellcheck": "false"}),
    )
    file = forms.FileField(
        label=gettext_lazy("or a file"),
        required=False,
        help_text=gettext_lazy("A .yaml file named after its key; leave the text above empty."),
    )
    recording = forms.FileField(
        label=gettext_lazy("Recording"),
        required=False,
        help_text=gettext_lazy("What `facho record` wrote of a device, of 2 MB at most: the columns are read from it."),
    )
    olt = forms.ModelChoiceField(
        label=gettext_lazy("OLT"),
        queryset=Olt.objects.none(),
        required=False,
        help_text=gettext_lazy("The device on which the definition will be tried."),
    )

    def __init__(self, data: Any = None, files: Any = None, *, scope: OltScope, olt_id: int | None = None) -> None:
        super().__init__(data, files, label_suffix="", initial={"olt": olt_id})
        field = self.fields["olt"]
        if isinstance(field, forms.ModelChoiceField):
            field.queryset = scope.narrow(Olt.objects.order_by("name"), "").only("name", "sys_object_id")

    def clean_file(self) -> str:
        """Return the text of the file; empty without one."""
        return _text_of(self.cleaned_data["file"], MAX_BYTES)

    def clean_recording(self) -> tuple[VarBind, ...]:
        """Return the rows of the recording; empty without one."""
        try:
            return read_recording(_text_of(self.cleaned_data["recording"], MAX_RECORDING_BYTES))
        except RecordingError as error:
            raise forms.ValidationError(str(error)) from error

    def clean(self) -> dict[str, Any]:
        values = super().clean() or {}
        pasted, uploaded = values.get("definition", "").strip(), values.get("file", "")
        if pasted and uploaded:
            self.add_error("file", _("There is text above: clear it to use the file, or remove the file."))
        elif not pasted and not uploaded and not self.errors:
            self.add_error("definition", _("Paste a definition or upload its file."))
        elif uploaded:
            # Shown in the field, so that it can be corrected and sent again.
            values["definition"] = uploaded
            self.data = {**dict(self.data.items()), "definition": uploaded}
        return values


@require_http_methods(["GET", "HEAD", "POST"])
@for_admins
def workbench_page(request: HttpRequest) -> HttpResponse:
    """Show the faults of a definition, what it leaves out, and what its columns make of a recording."""
    scope = scope_of(request.user)
    if request.method != "POST":
        form = WorkbenchForm(scope=scope, olt_id=read_id(request.GET.get("olt", "")) or None)
        return render(request, "workbench/workbench.html", {"form": form})
    form = WorkbenchForm(request.POST, request.FILES, scope=scope)
    context: dict[str, Any] = {"form": form}
    if form.is_valid():
        upload = request.FILES.get("file")
        review = review_text(form.cleaned_data["definition"], (upload and upload.name) or PASTED)
        context |= {"review": review, "gaps": describe_gaps(review), "olt": form.cleaned_data["olt"]}
        context["lines"] = _lines(review, form.cleaned_data["recording"])
    return render(request, "workbench/workbench.html", context)


def _lines(review: Review, rows: tuple[VarBind, ...]) -> list[TrialLine]:
    if review.definition is None or not rows:
        return []
    return describe_trial(try_on_recording(review.definition, rows, TrialBounds()))


def _text_of(file: "UploadedFile[bytes] | None", most_bytes: int) -> str:
    if file is None:
        return ""
    if file.size is None or file.size > most_bytes:
        raise forms.ValidationError(_("This file is larger than %s kB.") % (most_bytes // 1000))
    try:
        return str(file.read().decode())
    except UnicodeDecodeError:
        raise forms.ValidationError(_("This file is not UTF-8 text.")) from None
