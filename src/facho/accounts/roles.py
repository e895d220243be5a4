"""The three roles, kept as Django groups, so that the admin can give and take them."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser, Group, User
from django.core.exceptions import PermissionDenied
from django.db.models import Q, QuerySet, Value
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from facho.accounts.models import ProfileGroup

NO_ROLE = _("Your account has no role yet: ask an administrator to make you viewer, operator or admin.")
_KNOWN_GROUPS = "_facho_groups"
# No form accepts these brackets in a name, so no user can have it.
CONSOLE = "(console)"


class Role(StrEnum):
    """What a user or token may do; each role includes the ones before it."""

    VIEWER = "viewer"
    OPERATOR = "operator"
    ADMIN = "admin"

    @property
    def rank(self) -> int:
        return list(Role).index(self)

    def includes(self, other: "Role") -> bool:
        return self.rank >= other.rank


@dataclass(frozen=True, slots=True)
class UserGroups:
    """The groups that give roles, and the OLT groups that limit the scope."""

    names: frozenset[str]
    olt_group_ids: frozenset[int]


class RoleNeeded(PermissionDenied):
    """The user's role is too low; names the one required."""

    def __init__(self, role: Role) -> None:
        super().__init__(role.value)
        self.role = role


ROLE_WORDS: dict[Role, Promise] = {
    Role.VIEWER: _("view"),
    Role.OPERATOR: _("view and operate"),
    Role.ADMIN: _("everything"),
}


def role_of(user: AbstractBaseUser | AnonymousUser) -> Role | None:
    """Return the highest role of an active user; None may log in and see only itself."""
    if not isinstance(user, User) or not user.is_active:
        return None
    return Role.ADMIN if user.is_superuser else highest_of(user, groups_of(user).names)


def groups_of(user: User) -> UserGroups:
    """Return both kinds of groups in one query, cached per request."""
    known: UserGroups | None = getattr(user, _KNOWN_GROUPS, None)
    if known is None:
        names = User.groups.through.objects.filter(user_id=user.pk).values_list("group__name", Value(0))
        olts = ProfileGroup.objects.filter(profile__user_id=user.pk).values_list(Value(""), "oltgroup_id")
        rows = list(names.union(olts, all=True))
        known = UserGroups(
            names=frozenset(name for name, _number in rows if name),
            olt_group_ids=frozenset(number for _name, number in rows if number),
        )
        setattr(user, _KNOWN_GROUPS, known)
    return known


def highest_of(user: User, group_names: Iterable[str]) -> Role | None:
    """Return the highest role of a user's groups, even for a closed account."""
    if user.is_superuser:
        return Role.ADMIN
    names = set(group_names)
    return max((role for role in Role if role.value in names), key=lambda role: role.rank, default=None)


def lower(one: Role, other: Role) -> Role:
    return min(one, other, key=lambda role: role.rank)


def give_role(user: User, role: Role | None) -> None:
    """Make this the only role of a saved user, or take the role away; only administrators may enter the admin."""
    user.is_staff = user.is_superuser = role is Role.ADMIN
    user.save(update_fields=["is_staff", "is_superuser"])
    groups = {each: Group.objects.get_or_create(name=each.value)[0] for each in Role}
    user.groups.remove(*groups.values())
    if role is not None:
        user.groups.add(groups[role])
    vars(user).pop(_KNOWN_GROUPS, None)


def people() -> QuerySet[User]:
    return User.objects.exclude(username=CONSOLE)


def local_people() -> QuerySet[User]:
    """Those who log in here, whether a provider answers or not."""
    return people().filter(identity=None)


def last_admins_among(users: Iterable[User]) -> list[User]:
    """Return those of these users who are administrators, if no other administrator remains."""
    chosen = {user.pk: user for user in users}
    can = Q(is_superuser=True) | Q(groups__name=Role.ADMIN.value)
    admins = set(people().filter(can, is_active=True).values_list("pk", flat=True))
    return [chosen[pk] for pk in sorted(admins)] if admins <= chosen.keys() else []
