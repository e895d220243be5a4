"""Taking note of what is wrong, on a page: the form, who may use it, and what it answers."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from facho.accounts.acknowledge import (
    MAX_NOTE_LENGTH,
    AcknowledgementError,
    acknowledge,
    take_back,
    who_acknowledged,
)
from facho.accounts.models import Acknowledgeable
from facho.dashboard.parts import may_operate, must_operate

TAKE_BACK = "take_back"


class NoteForm(forms.Form):
    """What somebody who takes note wants others to know."""

    note = forms.CharField(
        label=_("Note for the others"),
        required=False,
        max_length=MAX_NOTE_LENGTH,
        widget=forms.Textarea(attrs={"rows": 2, "placeholder": _("for example: the crew is under way")}),
    )


@dataclass(frozen=True, slots=True)
class Acknowledgement:
    """Who took note, when and with which words; nobody while `at` is None."""

    at: datetime | None
    who: str
    note: str
    is_own: bool


def acknowledgement_context(request: HttpRequest, thing: Acknowledgeable) -> dict[str, Any]:
    """Describe for a page who took note, with a form for whoever may."""
    is_own = thing.acknowledged_by_id is not None and thing.acknowledged_by_id == request.user.pk
    who = who_acknowledged(thing) if thing.acknowledged_at else ""
    return {
        "acknowledgement": Acknowledgement(thing.acknowledged_at, who, thing.acknowledgement, is_own),
        "may_acknowledge": may_operate(request),
        "note_form": NoteForm(initial={"note": thing.acknowledgement}, label_suffix=""),
    }


def answer_acknowledgement(request: HttpRequest, thing: Acknowledgeable, page: str) -> HttpResponse:
    """Do what the form asks for and lead back to the page with its name; what was refused is said there."""
    must_operate(request)
    form = NoteForm(request.POST)
    try:
        if TAKE_BACK in request.POST:
            take_back(thing, request.user)
        elif form.is_valid():
            acknowledge(thing, request.user, form.cleaned_data["note"], now=timezone.now())
        else:
            messages.error(request, str(form.errors["note"][0]))
    except AcknowledgementError as error:
        messages.error(request, str(error))
    return redirect(page, thing.pk)
