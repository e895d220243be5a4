"""Makes and checks API tokens. The text is shown once; the database holds its digest and opens nothing."""

import hashlib
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Q

from facho.accounts.audit import speak_by_token
from facho.accounts.roles import Role, lower, role_of
from facho.accounts.scope import limit_scope, scope_of
from facho.api.models import ApiToken, TokenGroup
from facho.hosts.models import OltGroup

# Lets people and secret scanners recognise a token that strayed.
PREFIX = "facho_"
RANDOM_BYTES = 32
# Every request would be a write otherwise.
LAST_USED_RESOLUTION = timedelta(minutes=1)
# A forgotten token ends by itself.
DEFAULT_DAYS = 365
MOST_DAYS = 3650


class RoleTooHigh(ValueError):
    """The token would have more permissions than its user."""


@dataclass(frozen=True, slots=True)
class Grant:
    """What a token proves: the user, and the role for this request."""

    user: User
    token_id: int
    role: Role


def create_token(
    user: User,
    *,
    role: Role | None = None,
    expires_at: datetime | None = None,
    name: str = "",
    olt_groups: Sequence[OltGroup] = (),
) -> str:
    """Store a new token and return its text, which is stored nowhere.

    By default it has its owner's permissions and scope, and never expires.
    """
    highest = role_of(user)
    if highest is None or not highest.includes(role or highest):
        raise RoleTooHigh(highest or "")
    text = PREFIX + secrets.token_urlsafe(RANDOM_BYTES)
    with transaction.atomic():
        token = ApiToken.objects.create(
            user=user, digest=digest(text), role=role or highest, expires_at=expires_at, name=name
        )
        token.olt_groups.set(olt_groups)
    return text


def verify_token(text: str, *, now: datetime) -> Grant | None:
    """Return what the token grants now, never more than its user has."""
    token = ApiToken.objects.select_related("user").filter(digest=digest(text)).first()
    if token is None or (token.expires_at is not None and token.expires_at <= now):
        return None
    highest = role_of(token.user)
    if highest is None:
        return None
    before = now - LAST_USED_RESOLUTION
    if token.last_used_at is None or token.last_used_at <= before:
        stale = Q(last_used_at__isnull=True) | Q(last_used_at__lte=before)
        ApiToken.objects.filter(stale, id=token.id).update(last_used_at=now)
    # Limit the request's user, and its audit entries, to the token's scope.
    groups = frozenset(TokenGroup.objects.filter(token=token).values_list("oltgroup_id", flat=True))
    if groups:
        limit_scope(token.user, scope_of(token.user).within(groups))
    speak_by_token(token.user, token.id)
    return Grant(token.user, token.id, lower(Role(token.role), highest))


def digest(text: str) -> str:
    """Hash a token; it is long and random, so a fast hash is enough."""
    return hashlib.sha256(text.encode()).hexdigest()
