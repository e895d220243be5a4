"""What the navigation of every page needs to know."""

from django import template
from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.utils import timezone

from facho.accounts.scope import scope_of
from facho.dashboard.outages_now import count_unseen
from facho.dashboard.times import zone_in_short

register = template.Library()


@register.simple_tag
def zone_of_times() -> str:
    """Name the zone of the times on this page, as it is today."""
    return zone_in_short(timezone.now())


@register.simple_tag
def unseen_outages(user: AbstractBaseUser | AnonymousUser) -> int:
    """Count what is out where a user may look and nobody has taken note of; one query."""
    return count_unseen(scope_of(user))
