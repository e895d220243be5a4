"""What pages share: parts that refresh themselves, permissions, filters by time, acknowledgements, bars."""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import wraps
from hashlib import blake2b
from http import HTTPStatus
from typing import Any, ClassVar, Generic, TypeVar
from urllib.parse import urlencode

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.cache import patch_vary_headers
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django_htmx.http import HttpResponseClientRefresh

from facho.accounts.acknowledge import (
    MAX_NOTE_LENGTH,
    AcknowledgementError,
    acknowledge,
    take_back,
)
from facho.accounts.models import Acknowledgeable
from facho.accounts.roles import Role, RoleNeeded, role_of
from facho.accounts.scope import OltScope, scope_of
from facho.dashboard.shared.outages import count_unseen
from facho.hosts.models import Olt
from facho.onus.timeline import TimelineCursor, read_cursor
from facho.plant.boxes import visible_zones

View = Callable[..., HttpResponseBase]
Subject = TypeVar("Subject")
ROWS_PER_PAGE = 50
CURSOR = "cursor"
TAKE_BACK = "take_back"
_TO_NEXT_MINUTE = timedelta(minutes=1) - timedelta.resolution


@dataclass(frozen=True, slots=True)
class PagePart(Generic[Subject]):
    """A part of a page: its template, its loader, and its refresh interval in seconds."""

    template: str
    seconds: int
    load: Callable[[HttpRequest, Subject, datetime], dict[str, Any]]


def part_called(name: str, parts: Mapping[str, PagePart[Subject]]) -> PagePart[Subject]:
    if name not in parts:
        raise Http404
    return parts[name]


def load_parts(
    parts: Mapping[str, PagePart[Subject]], request: HttpRequest, subject: Subject, now: datetime
) -> dict[str, Any]:
    context: dict[str, Any] = {"parts": parts}
    for part in parts.values():
        context |= part.load(request, subject, now)
    return context


def for_users(view: View) -> View:
    """Require login and a role.

    A part that refreshes itself reloads the whole page instead of showing a login form inside it.
    """
    page = login_required(view)

    @wraps(view)
    def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        has_role = role_of(request.user) is not None
        if is_part(request) and not has_role:
            return HttpResponseClientRefresh()
        if request.user.is_authenticated and not has_role:
            raise RoleNeeded(Role.VIEWER)
        return page(request, *args, **kwargs)

    return guarded


def _for_role(needed: Role) -> Callable[[View], View]:
    def require(view: View) -> View:
        @for_users
        @wraps(view)
        def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            role = role_of(request.user)
            if role is None or not role.includes(needed):
                raise RoleNeeded(needed)
            return view(request, *args, **kwargs)

        return guarded

    return require


for_operators, for_admins = _for_role(Role.OPERATOR), _for_role(Role.ADMIN)


def for_admins_of_all_olts(view: View) -> View:
    """Require an administrator who sees every OLT: what is changed there reaches all of them."""

    @for_admins
    @wraps(view)
    def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if not scope_of(request.user).is_everything:
            raise PermissionDenied(gettext("This affects OLTs outside your scope."))
        return view(request, *args, **kwargs)

    return guarded


def may_operate(request: HttpRequest) -> bool:
    role = role_of(request.user)
    return role is not None and role.includes(Role.OPERATOR)


def must_operate(request: HttpRequest) -> None:
    """Raise PermissionDenied, naming the roles that may, unless the user is an operator."""
    if not may_operate(request):
        raise RoleNeeded(Role.OPERATOR)


def is_part(request: HttpRequest) -> bool:
    """Whether htmx asks for a part; history restores get the whole page."""
    return request.headers.get("HX-Request") == "true" and "HX-History-Restore-Request" not in request.headers


def render_part_or_page(request: HttpRequest, part: str, page: str, context: dict[str, Any]) -> HttpResponse:
    """Render the template of the part for htmx, and else the page around it."""
    answer = render(request, part if is_part(request) else page, context)
    patch_vary_headers(answer, ["HX-Request"])
    return answer


# What differs in every answer and says nothing new: times, which the browser counts on, and the mask of a form's token.
_RESTLESS = re.compile(rb'(<time [^>]*>)[^<]*|name="csrfmiddlewaretoken" value="[^"]*"')


class LivePartsMiddleware:
    """Answers 304 to a browser that shows a part as it is, and tells with each part how many outages are unseen.

    A browser that can do both names the version that it shows in `If-None-Match`.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = self.get_response(request)
        is_asked = request.method == "GET" and is_part(request) and "If-None-Match" in request.headers
        if not is_asked or response.status_code != HTTPStatus.OK or role_of(request.user) is None:
            return response
        if not isinstance(response, HttpResponse):
            return response
        digest = blake2b(_RESTLESS.sub(rb"\1", response.content), digest_size=12).hexdigest()
        # Weak: of two answers of one version the times may differ.
        etag = f'W/"{digest}"'
        if request.headers["If-None-Match"] == etag:
            response = HttpResponse(status=HTTPStatus.NOT_MODIFIED)
        response.headers["ETag"] = etag
        response.headers["HX-Trigger"] = json.dumps({"unseen-outages": count_unseen(scope_of(request.user))})
        return response


def offer(form: forms.Form, name: str, choices: Iterable[tuple[Any, Any]]) -> None:
    field = form.fields[name]
    if isinstance(field, forms.ChoiceField):
        field.choices = list(choices)


def named_olts(scope: OltScope) -> list[tuple[str, str]]:
    olts = scope.narrow(Olt.objects.order_by("name"), "").values_list("id", "name")
    return [(str(pk), name) for pk, name in olts]


_ALL = _("all")


def choice_field(label: Any, choices: Iterable[tuple[Any, Any]] = (), every: Any = _ALL) -> forms.ChoiceField:
    return forms.ChoiceField(label=label, required=False, choices=[("", every), *choices])


def moment_field(label: Any, **more: Any) -> forms.DateTimeField:
    """Ask for a date and a time on the user's clock."""
    widget = forms.DateTimeInput({"type": "datetime-local"}, format="%Y-%m-%dT%H:%M")
    return forms.DateTimeField(label=label, widget=widget, **more)


def asked_span(after: datetime, before: datetime | None) -> dict[str, str]:
    """Write a span as a `TimelineFilter` reads it: whole minutes on the user's clock that hold all of it."""
    span = {"after": f"{timezone.localtime(after):%Y-%m-%dT%H:%M}"}
    # The next whole minute, if it is none.
    return span | ({"before": f"{timezone.localtime(before + _TO_NEXT_MINUTE):%Y-%m-%dT%H:%M}"} if before else {})


def search_field(label: Any, placeholder: Any = "", *, max_length: int = 100, **more: Any) -> forms.CharField:
    widget = forms.TextInput(attrs={"type": "search"} | ({"placeholder": placeholder} if placeholder else {}))
    return forms.CharField(label=label, required=False, max_length=max_length, widget=widget, **more)


def named_zones(scope: OltScope) -> list[tuple[str, str]]:
    return [(str(pk), name) for pk, name in visible_zones(scope).order_by("name").values_list("id", "name")]


class ListFilter(forms.Form):
    ids: ClassVar[str] = "filter-%s"

    def __init__(self, data: Any, scope: OltScope) -> None:
        super().__init__(data, auto_id=self.ids, label_suffix="")
        self.scope = scope
        if "olt" in self.fields:
            offer(self, "olt", [("", _("all")), *named_olts(scope)])

    @property
    def chosen(self) -> dict[str, Any]:
        self.full_clean()
        return {name: value for name, value in self.cleaned_data.items() if value not in ("", None)}

    @property
    def query(self) -> str:
        """The choices as the start of a query string; empty where nothing is narrowed."""
        given = {name: value for name in self.fields if (value := self.data.get(name))}
        return f"{urlencode(given)}&" if given else ""


class TimelineFilter(ListFilter):
    lookups: ClassVar[Mapping[str, str]] = {}
    olt = choice_field(_("OLT"))
    after = moment_field(_("From"), required=False)
    before = moment_field(_("To"), required=False)

    def narrow(self, rows: QuerySet[Any]) -> QuerySet[Any]:
        chosen = self.chosen
        return rows.filter(**{lookup: chosen[name] for name, lookup in self.lookups.items() if name in chosen})


def read_id(text: str) -> int:
    """Read the id of a row as an address or a form has it; 0, which no row has, where it cannot be one."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 19 else 0


def cursor_of(request: HttpRequest) -> TimelineCursor | None:
    """Return the page's cursor; an invalid one means the latest rows."""
    try:
        return read_cursor(request.GET.get(CURSOR, ""))
    except ValueError:
        return None


class NoteForm(forms.Form):
    note = forms.CharField(
        label=_("Note for your team"),
        required=False,
        max_length=MAX_NOTE_LENGTH,
        widget=forms.Textarea(attrs={"rows": 2, "placeholder": _("for example: crew on its way")}),
    )


def acknowledgement_context(request: HttpRequest, thing: Acknowledgeable) -> dict[str, Any]:
    """Build the page context: who acknowledged, and a form for operators."""
    return {
        "acknowledged": thing,
        "is_own": thing.acknowledged_by_id is not None and thing.acknowledged_by_id == request.user.pk,
        "may_acknowledge": may_operate(request),
        "note_form": NoteForm(initial={"note": thing.acknowledgement}, label_suffix=""),
    }


def answer_acknowledgement(request: HttpRequest, thing: Acknowledgeable, page: str) -> HttpResponse:
    """Acknowledge or withdraw, then redirect to `page`; a refusal becomes a message there."""
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


@dataclass(frozen=True, slots=True)
class Bar:
    kind: str
    x: str
    width: str


def coordinate(length: float) -> str:
    return f"{length:.2f}".rstrip("0").rstrip(".")


def stack(parts: Iterable[tuple[str, float]], *, total: float, width: float = 100) -> list[Bar]:
    bars, done = [], 0.0
    for kind, amount in parts:
        if amount > 0 and total > 0:
            length = min(amount, total - done)
            bars.append(Bar(kind, coordinate(done / total * width), coordinate(length / total * width)))
            done += length
    return bars


def rectangle(x: float, y: float, width: float, height: float) -> str:
    w = coordinate(width)
    return f"M{coordinate(x)} {coordinate(y)}h{w}v{coordinate(height)}h-{w}z"
