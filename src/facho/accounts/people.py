"""Who the users are: people, and not the name under which commands are written down."""

from collections.abc import Iterable

from django.contrib.auth.models import User
from django.db.models import Q, QuerySet

from facho.accounts.roles import Role

# No form accepts these brackets in a name, so nobody has it.
CONSOLE = "(console)"


def people() -> QuerySet[User]:
    """Return the accounts of people."""
    return User.objects.exclude(username=CONSOLE)


def last_admins_among(users: Iterable[User]) -> list[User]:
    """Return those of these users who administer the product, if nobody else could; nobody otherwise."""
    chosen = {user.pk: user for user in users}
    can = Q(is_superuser=True) | Q(groups__name=Role.ADMIN.value)
    admins = set(people().filter(can, is_active=True).values_list("pk", flat=True))
    return [chosen[pk] for pk in sorted(admins)] if admins <= chosen.keys() else []
