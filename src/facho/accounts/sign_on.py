"""Turns a person confirmed by a provider or a directory into an account with a role and OLT groups.

An account is found only by issuer and subject: people can choose their name or e-mail address.
"""

import logging
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from facho.accounts.audit import Action, changed_words, console, record
from facho.accounts.models import LinkedIdentity, Profile
from facho.accounts.roles import Role, give_role, highest_of
from facho.accounts.sessions import end_sessions_of
from facho.hosts.models import OltGroup

logger = logging.getLogger(__name__)

# In FACHO_SIGN_ON_OLT_GROUPS: members of this group see every OLT.
ALL_OLTS = "*"
MOST_GROUPS = 2_000
LONGEST_NAME = 120
_NOT_IN_NAMES = re.compile(r"[^\w.@+-]+")


class SignOnRefused(Exception):
    """Somebody may not enter; the sentence is for them, the log has the details."""

    def __init__(self, sentence: str | Promise, why: str) -> None:
        super().__init__(why)
        self.sentence = sentence


@dataclass(frozen=True, slots=True)
class Identity:
    """Somebody, as the issuer knows them now; groups are compared without regard to case."""

    issuer: str
    subject: str
    name: str
    email: str
    groups: frozenset[str]


@dataclass(frozen=True, slots=True)
class Grants:
    """What groups give: a role, and the names of OLT groups; None leaves those to the product."""

    role: Role | None
    olt_groups: frozenset[str] | None


def grants_of(groups: Iterable[str]) -> Grants:
    """Return what these groups give by the settings; without a role nobody enters."""
    known = {group.casefold() for group in groups}
    roles = [Role(word) for word, group in settings.FACHO_SIGN_ON_ROLES if group.casefold() in known]
    role = max(roles, key=lambda role: role.rank, default=None)
    if not settings.FACHO_SIGN_ON_OLT_GROUPS:
        return Grants(role, None)
    names = frozenset(name for name, group in settings.FACHO_SIGN_ON_OLT_GROUPS if group.casefold() in known)
    return Grants(role, names)


def admit(identity: Identity, now: datetime) -> User:
    """Return the account, made at the first sign-on, with the role and OLT groups of today; SignOnRefused otherwise."""
    grants = grants_of(identity.groups)
    with transaction.atomic():
        rows = LinkedIdentity.objects.select_related("user").select_for_update(of=("self",))
        linked = rows.filter(issuer=identity.issuer, subject=identity.subject).first()
        lacking = _lacking(grants)
        if linked is not None and lacking is not None:
            _take_role(linked.user)
        refusal = _refusal(linked) or lacking
        if refusal is None and grants.role is not None:
            user = linked.user if linked else _create(identity, now)
            _give(user, grants.role, grants.olt_groups, identity)
            LinkedIdentity.objects.filter(user=user).update(signed_on_at=now)
            return user
    # Outside of the transaction: the role that was taken stays taken.
    raise refusal or SignOnRefused("", "no role")


def _refusal(linked: LinkedIdentity | None) -> SignOnRefused | None:
    if linked is not None and not linked.user.is_active:
        return SignOnRefused(_("This account is disabled: ask an administrator."), "account disabled")
    return None


def _lacking(grants: Grants) -> SignOnRefused | None:
    """Return why these groups do not suffice; without an OLT group somebody would see every OLT."""
    if grants.role is None:
        return SignOnRefused(_("None of your groups may use Facho: ask an administrator."), "no group with a role")
    if grants.olt_groups is not None and ALL_OLTS not in grants.olt_groups and not _existing(grants.olt_groups):
        return SignOnRefused(_("None of your groups may see an OLT: ask an administrator."), "no OLT group")
    return None


def _existing(names: frozenset[str]) -> list[OltGroup]:
    return list(OltGroup.objects.filter(name__in=names).order_by("name"))


def _create(identity: Identity, now: datetime) -> User:
    """Create an account under a free name: a taken name belongs to another user."""
    wanted = _NOT_IN_NAMES.sub("-", identity.name[:LONGEST_NAME]).strip("-") or "user"
    taken = set(User.objects.filter(username__istartswith=wanted).values_list("username", flat=True))
    folded = {name.casefold() for name in taken}
    names = (wanted if number == 1 else f"{wanted}-{number}" for number in range(1, len(folded) + 2))
    user = User(username=next(name for name in names if name.casefold() not in folded))
    user.set_unusable_password()
    user.save()
    # Two concurrent first sign-ons: the constraints admit one; the other fails and works when repeated.
    LinkedIdentity.objects.create(user=user, issuer=identity.issuer, subject=identity.subject, signed_on_at=now)
    record(console(), user, Action.ADDED, f"sign-on: {identity.issuer}")
    logger.info("sign_on.account_created user=%s issuer=%s", user.username, identity.issuer)
    return user


def _give(user: User, given: Role, olt_groups: frozenset[str] | None, identity: Identity) -> None:
    """Write down what differs from the last sign-on, and nothing when all is as it was."""
    profile, _is_new = Profile.objects.get_or_create(user=user)
    groups = list(profile.olt_groups.order_by("name"))
    role = highest_of(user, user.groups.values_list("name", flat=True))
    wanted = groups
    if olt_groups is not None:
        wanted = [] if ALL_OLTS in olt_groups else _existing(olt_groups)
    before = {"role": role, "OLT groups": _names(groups), "email": user.email}
    after = {"role": given, "OLT groups": _names(wanted), "email": identity.email}
    if before == after:
        return
    if role is not given:
        give_role(user, given)
    if wanted != groups:
        profile.olt_groups.set(wanted)
    if user.email != identity.email:
        user.email = identity.email
        user.save(update_fields=["email"])
    record(console(), user, Action.CHANGED, changed_words(before, after))


def _take_role(user: User) -> None:
    """Take role and sessions from a user whose groups do not suffice; tokens have no more than the role."""
    before = highest_of(user, user.groups.values_list("name", flat=True))
    ended = end_sessions_of(user)
    if before is not None:
        give_role(user, None)
        record(console(), user, Action.CHANGED, changed_words({"role": before}, {"role": ""}))
    logger.warning("sign_on.role_taken user=%s sessions=%s", user.username, ended)


def _names(groups: Iterable[OltGroup]) -> str:
    return ", ".join(group.name for group in groups)
