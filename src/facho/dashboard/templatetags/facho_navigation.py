"""What the navigation of every page needs to know."""

from django import template
from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.utils import timezone

from facho.accounts.roles import role_of
from facho.accounts.scope import scope_of
from facho.dashboard.overview.hour import zone_in_short
from facho.dashboard.overview.outages import count_unseen

register = template.Library()


@register.filter
def has_role(user: AbstractBaseUser | AnonymousUser) -> bool:
    """Whether the user may see more than their own account."""
    return role_of(user) is not None


@register.simple_tag
def zone_of_times() -> str:
    return zone_in_short(timezone.now())


@register.simple_tag
def unseen_outages(user: AbstractBaseUser | AnonymousUser) -> int:
    """Count open, unacknowledged outages in the user's scope; one query."""
    return count_unseen(scope_of(user))
