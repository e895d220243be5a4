"""What the navigation of every page needs to know."""

from django import template
from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

from facho.accounts.scope import scope_of
from facho.dashboard.outages_now import count_unseen

register = template.Library()


@register.simple_tag
def unseen_outages(user: AbstractBaseUser | AnonymousUser) -> int:
    """Count what is out where a user may look and nobody has taken note of; one query."""
    return count_unseen(scope_of(user))
