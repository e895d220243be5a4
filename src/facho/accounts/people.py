"""Accounts as pages and API change them: role and groups in one step, and a link by which a password is chosen."""

from collections.abc import Iterable
from typing import Any

from django.conf import settings
from django.contrib.auth.models import AnonymousUser, User
from django.contrib.auth.tokens import default_token_generator
from django.core import signing
from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext as _

from facho.accounts.models import Profile
from facho.accounts.roles import Role, give_role, highest_of, last_admins_among, people
from facho.hosts.models import OltGroup

# Links that were sent before stay valid.
_SALT = "facho.dashboard.settings.people"


def find_faults(user: User, by: User | AnonymousUser, *, role: str | None, is_active: bool) -> dict[str, str]:
    """Return why an account may not become this, by field: somebody has to remain who can let others in."""
    faults = {}
    if user.pk and user.pk == by.pk and not is_active:
        faults["is_active"] = _("You cannot disable your own account.")
    if user.pk and not (role == Role.ADMIN and is_active) and last_admins_among([user]):
        at_fault = "role" if role != Role.ADMIN else "is_active"
        faults[at_fault] = _("This is the last administrator: add another one first.")
    return faults


def give(user: User, role: Role, groups: Iterable[OltGroup]) -> None:
    """Give a saved account its role and its groups; no groups: all OLTs."""
    give_role(user, role)
    profile, _is_new = Profile.objects.get_or_create(user=user)
    profile.olt_groups.set(groups)


def facts_of(user: User) -> dict[str, Any]:
    """Return what is set of an account, as the audit describes it."""
    groups = OltGroup.objects.filter(profiles__user=user).order_by("name")
    return {
        "username": user.username,
        "email": user.email,
        "role": highest_of(user, user.groups.values_list("name", flat=True)) or "",
        "OLT groups": ", ".join(group.name for group in groups),
        "active": str(user.is_active),
    }


def may_have_link(user: User) -> bool:
    """Tell whether a password may be chosen: with single sign-on it would bypass the provider."""
    return user.is_active and not hasattr(user, "identity")


def make_link(request: HttpRequest, user: User) -> str:
    """Return the address at which somebody chooses a password: once, and for some days."""
    token = signing.dumps([user.pk, default_token_generator.make_token(user)], salt=_SALT)
    return request.build_absolute_uri(reverse("invitation", args=[token]))


def invited(token: str) -> User | None:
    """Return the person whose link it is; None once a password was chosen with it, or after its days."""
    try:
        user_id, made = signing.loads(token, salt=_SALT, max_age=settings.PASSWORD_RESET_TIMEOUT)
    except (signing.BadSignature, ValueError, TypeError):
        return None
    user = people().filter(id=user_id, is_active=True, identity=None).first()
    return user if user is not None and default_token_generator.check_token(user, made) else None
