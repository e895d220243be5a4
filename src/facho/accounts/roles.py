"""The three roles, kept as Django groups, so that the admin can give and take them."""

from collections.abc import Iterable
from enum import StrEnum

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser, Group, User
from django.core.exceptions import PermissionDenied
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _


class Role(StrEnum):
    """What a person or a token may do; each role may do all that the ones before it may."""

    VIEWER = "viewer"
    OPERATOR = "operator"
    ADMIN = "admin"

    @property
    def rank(self) -> int:
        """The place in the order of power."""
        return list(Role).index(self)

    def includes(self, other: "Role") -> bool:
        """Tell whether this role may do what the other may."""
        return self.rank >= other.rank


class RoleNeeded(PermissionDenied):
    """Who asked has too low a role; this one would do."""

    def __init__(self, role: Role) -> None:
        super().__init__(role.value)
        self.role = role


ROLE_WORDS: dict[Role, Promise] = {
    Role.VIEWER: _("look"),
    Role.OPERATOR: _("look and operate"),
    Role.ADMIN: _("everything"),
}


def role_of(user: AbstractBaseUser | AnonymousUser) -> Role | None:
    """Return the highest role of an active user; nobody else has one."""
    if not isinstance(user, User) or not user.is_active:
        return None
    return highest_of(user, user.groups.values_list("name", flat=True))


def highest_of(user: User, group_names: Iterable[str]) -> Role | None:
    """Return the highest role that a user's groups give, whether the account is open or not."""
    if user.is_superuser:
        return Role.ADMIN
    names = set(group_names)
    return max((role for role in Role if role.value in names), key=lambda role: role.rank, default=None)


def lower(one: Role, other: Role) -> Role:
    """Return the weaker of two roles."""
    return min(one, other, key=lambda role: role.rank)


def give_role(user: User, role: Role) -> None:
    """Make this the one role of a saved user; only an admin may enter the admin pages."""
    user.is_staff = user.is_superuser = role is Role.ADMIN
    user.save(update_fields=["is_staff", "is_superuser"])
    groups = {each: Group.objects.get_or_create(name=each.value)[0] for each in Role}
    user.groups.remove(*groups.values())
    user.groups.add(groups[role])
