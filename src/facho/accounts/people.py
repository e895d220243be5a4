"""Who the users are: people, and not the name under which commands are written down."""

from django.contrib.auth.models import User
from django.db.models import Q, QuerySet

from facho.accounts.roles import Role

# No form accepts these brackets in a name, so nobody has it.
CONSOLE = "(console)"


def people() -> QuerySet[User]:
    """Return the accounts of people."""
    return User.objects.exclude(username=CONSOLE)


def is_last_admin(user: User) -> bool:
    """Tell whether nobody else could administer the product if this user could not."""
    can = Q(is_superuser=True) | Q(groups__name=Role.ADMIN.value)
    admins = people().filter(can, is_active=True).distinct()
    return list(admins.values_list("pk", flat=True)[:2]) == [user.pk]
