"""People: accounts with their roles and the OLTs they see; new people come by a link that is valid once."""

from typing import TYPE_CHECKING, Any

from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.forms import SetPasswordForm
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from facho.accounts import factors
from facho.accounts.audit import Action, changed_words, record
from facho.accounts.models import LoginSession, SecondFactorDuty, WayIn
from facho.accounts.people import facts_of, find_faults, give, invited, make_link
from facho.accounts.roles import ROLE_WORDS, Role, highest_of, people
from facho.accounts.sessions import end_sessions_of, enter, load_sessions
from facho.dashboard.account.factors import lead_on
from facho.dashboard.shared.page import for_admins_of_all_olts
from facho.hosts.models import OltGroup
from facho.infrastructure.secrets import Secret, UndecryptableSecret, decrypt, encrypt

if TYPE_CHECKING:
    _PersonModelForm = forms.ModelForm[User]
    _Password = SetPasswordForm[User]
else:
    _PersonModelForm, _Password = forms.ModelForm, SetPasswordForm  # generic in their stubs only

SHOWN_ONCE = "new_person_link"
ROLES: list[tuple[str, Any]] = [
    (Role.VIEWER.value, gettext_lazy("Viewer: sees everything in its OLTs, changes nothing")),
    (Role.OPERATOR.value, gettext_lazy("Operator: also runs jobs, pauses OLTs and acknowledges")),
    (Role.ADMIN.value, gettext_lazy("Administrator: everything, settings and people too")),
]
ROLE_TITLES: dict[Role, Any] = {
    Role.VIEWER: gettext_lazy("Viewers"),
    Role.OPERATOR: gettext_lazy("Operators"),
    Role.ADMIN: gettext_lazy("Administrators"),
}
DAY_SECONDS = 24 * 60 * 60


class PersonForm(_PersonModelForm):
    """Name, role and groups in one step; the last administrator keeps that role."""

    role = forms.ChoiceField(
        label=gettext_lazy("Role"), choices=ROLES, widget=forms.RadioSelect, initial=Role.VIEWER.value
    )
    olt_groups = forms.ModelMultipleChoiceField(
        OltGroup.objects.all(),
        label=gettext_lazy("Only the OLTs of these groups"),
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text=gettext_lazy("None ticked: all OLTs."),
    )

    class Meta:
        model = User
        fields = ["username", "email", "is_active"]
        labels = {
            "username": gettext_lazy("User name"),
            "email": gettext_lazy("E-mail"),
            "is_active": gettext_lazy("May log in"),
        }
        help_texts = {"username": "", "is_active": ""}

    field_order = ["username", "email", "role", "olt_groups", "is_active"]

    def __init__(self, *args: Any, by: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{**kwargs, "auto_id": "person-%s", "label_suffix": ""})
        self.by = by
        if self.instance.pk:
            names = self.instance.groups.values_list("name", flat=True)
            self.initial["role"] = highest_of(self.instance, names) or ""
            self.initial["olt_groups"] = list(OltGroup.objects.filter(profiles__user=self.instance))
        else:
            del self.fields["is_active"]
        if not OltGroup.objects.exists():
            del self.fields["olt_groups"]

    def clean(self) -> dict[str, Any]:
        values = super().clean() or self.cleaned_data
        is_active = values.get("is_active", True)
        faults = find_faults(self.instance, self.by, role=values.get("role"), is_active=is_active)
        for field, sentence in faults.items():
            self.add_error(field, sentence)
        return values


def load_people(text: str = "") -> list[dict[str, Any]]:
    """Load everybody who has an account; four queries, however many there are."""
    rows = people().select_related("identity").prefetch_related("groups", "profile__olt_groups").order_by("username")
    for word in text.split():
        rows = rows.filter(Q(username__icontains=word) | Q(email__icontains=word))
    lines = []
    for user in rows:
        role = highest_of(user, [group.name for group in user.groups.all()])
        groups = [group.name for group in user.profile.olt_groups.all()] if hasattr(user, "profile") else []
        is_invited = not user.has_usable_password() and not hasattr(user, "identity")
        words = ROLE_WORDS[role] if role else _("no role")
        lines.append({"user": user, "role": words, "groups": groups, "is_invited": is_invited})
    return lines


@require_safe
@never_cache
@for_admins_of_all_olts
def people_page(request: HttpRequest) -> HttpResponse:
    """List people, with the link of one that was just added: this one time."""
    text, due = request.GET.get("q", "")[:100], factors.load_duties()
    context = {
        "place": "people",
        "here": "settings",
        "now": timezone.now(),
        "q": text,
        "lines": load_people(text),
        "link": _take_link(request),
        "duties": [(role, ROLE_TITLES[role], role.value in due) for role in Role],
        "link_days": settings.PASSWORD_RESET_TIMEOUT // DAY_SECONDS,
    }
    return render(request, "settings/people.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
@for_admins_of_all_olts
def person_add(request: HttpRequest) -> HttpResponse:
    """Add somebody with role and groups, and show the link by which they choose their password."""
    form = PersonForm(request.POST or None, by=request.user)
    if form.is_valid():
        with transaction.atomic():
            user = form.save(commit=False)
            user.set_unusable_password()
            user.save()
            give(user, Role(form.cleaned_data["role"]), form.cleaned_data.get("olt_groups") or ())
            record(request.user, user, Action.ADDED, changed_words({}, facts_of(user)))
        _show_link(request, user)
        return redirect("settings-people")
    context = {"place": "people", "here": "settings", "form": form}
    return render(request, "settings/person.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
@for_admins_of_all_olts
def person(request: HttpRequest, user_id: int) -> HttpResponse:
    user = get_object_or_404(people().select_related("identity"), id=user_id)
    name, before = user.username, facts_of(user)
    form = PersonForm(request.POST or None, instance=user, by=request.user)
    if form.is_valid():
        with transaction.atomic():
            form.save()
            give(user, Role(form.cleaned_data["role"]), form.cleaned_data.get("olt_groups") or ())
            record(request.user, user, Action.CHANGED, changed_words(before, facts_of(user)))
        messages.success(request, _("Saved: %(name)s.") % {"name": user.username})
        return redirect("settings-people")
    context = {
        "place": "people",
        "here": "settings",
        "now": timezone.now(),
        "form": form,
        "person": user,
        "person_name": name,
        "has_factor": factors.has_factor(user),
        "sessions": load_sessions(user, timezone.now()),
        "own_key": request.session.session_key,
    }
    return render(request, "settings/person.html", context)


@require_POST
@for_admins_of_all_olts
def person_link(request: HttpRequest, user_id: int) -> HttpResponse:
    user = get_object_or_404(people().filter(is_active=True, identity=None), id=user_id)
    record(request.user, user, Action.CHANGED, gettext_lazy("A link to choose a password was made."))
    _show_link(request, user)
    return redirect("settings-people")


@require_POST
@for_admins_of_all_olts
def person_reset(request: HttpRequest, user_id: int) -> HttpResponse:
    """Remove the second factor of somebody who lost phone and codes; their sessions end."""
    user = get_object_or_404(people(), id=user_id)
    with transaction.atomic():
        if factors.reset(user):
            end_sessions_of(user)
            record(request.user, user, Action.CHANGED, gettext_lazy("Reset the second factor"))
    messages.success(request, _("The second factor of %(name)s was reset.") % {"name": user.username})
    return redirect("settings-people")


@require_POST
@for_admins_of_all_olts
def person_session_end(request: HttpRequest, user_id: int, session_id: int) -> HttpResponse:
    ended = get_object_or_404(LoginSession.objects.select_related("session", "user"), id=session_id, user_id=user_id)
    with transaction.atomic():
        record(request.user, ended.user, Action.CHANGED, changed_words({"session": ended}, {"session": ""}))
        ended.session.delete()
    messages.success(request, _("The session has ended."))
    return redirect("settings-person", user_id)


@require_POST
@for_admins_of_all_olts
def person_sessions_end(request: HttpRequest, user_id: int) -> HttpResponse:
    user = get_object_or_404(people(), id=user_id)
    with transaction.atomic():
        ended = end_sessions_of(user, but=request.session.session_key)
        record(request.user, user, Action.CHANGED, changed_words({"sessions": ended}, {"sessions": 0}))
    messages.success(request, _("The sessions of %(name)s have ended.") % {"name": user.username})
    return redirect("settings-person", user_id)


@require_POST
@for_admins_of_all_olts
def duties_save(request: HttpRequest) -> HttpResponse:
    """Say which roles must have a second factor; who has none is led to the set-up at the next log-in."""
    wanted, before = {role for role in Role if request.POST.get(role.value)}, set(factors.load_duties())
    with transaction.atomic():
        for role in sorted(wanted - before):
            record(request.user, SecondFactorDuty.objects.create(role=role.value), Action.ADDED)
        for duty in SecondFactorDuty.objects.filter(role__in=before - wanted):
            record(request.user, duty, Action.DELETED)
            duty.delete()
    messages.success(request, _("Saved. It applies from the next log-in."))
    return redirect("settings-people")


def _show_link(request: HttpRequest, user: User) -> None:
    # Sessions are rows: what only the administrator may see is not readable there.
    request.session[SHOWN_ONCE] = {"name": user.username, "address": encrypt(Secret(make_link(request, user)))}


def _take_link(request: HttpRequest) -> dict[str, str] | None:
    kept = request.session.pop(SHOWN_ONCE, None)
    try:
        return {"name": kept["name"], "address": decrypt(kept["address"]).reveal()} if kept else None
    except UndecryptableSecret:  # the key was changed in between
        return None


class FirstPasswordForm(_Password):
    def __init__(self, user: User, data: Any = None) -> None:
        super().__init__(user, data, label_suffix="")


@never_cache
@sensitive_post_parameters()
@require_http_methods(["GET", "HEAD", "POST"])
def invitation(request: HttpRequest, token: str) -> HttpResponse:
    """Let the person of a link choose a password, and log in; a link is valid once and for some days."""
    user = invited(token)
    if user is None:
        return render(request, "settings/invitation_closed.html", status=410)
    form = FirstPasswordForm(user, request.POST or None)
    if not form.is_valid():
        return render(request, "settings/invitation.html", {"form": form, "invited": user})
    with transaction.atomic():
        form.save()
        record(user, user, Action.CHANGED, changed_words({}, {"password": True}, secrets=["password"]))
    if second := lead_on(request, user, ""):
        return second
    enter(request, user, WayIn.LINK)
    return redirect("dashboard")
