"""Which OLTs a user may see. Every page and every answer of the API is narrowed by this, and by nothing else."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser, User
from django.db.models import Model, Q, QuerySet
from django.utils.translation import gettext as _

from facho.accounts.roles import groups_of, role_of
from facho.hosts.inventory import InventoryError
from facho.hosts.models import Olt

Row = TypeVar("Row", bound=Model)


@dataclass(frozen=True, slots=True)
class OltScope:
    """The OLTs a user may see: all, or those of some groups, which may be none."""

    group_ids: frozenset[int] | None = None

    @property
    def is_everything(self) -> bool:
        return self.group_ids is None

    def condition(self, olt: str = "olt") -> Q:
        """Match rows whose OLT is in scope; `olt` is the path to it, empty for OLTs themselves."""
        if self.group_ids is None:
            return Q()
        return Q(**{f"{olt}__group_id__in" if olt else "group_id__in": self.group_ids})

    def narrow(self, rows: QuerySet[Row], olt: str = "olt") -> QuerySet[Row]:
        return rows.filter(self.condition(olt))

    def allows(self, olt_id: int) -> bool:
        return olt_id in self.visible([olt_id])

    def visible(self, olt_ids: Iterable[int]) -> frozenset[int]:
        """Return the OLTs in scope; one query, or none for an unlimited scope."""
        wanted = frozenset(olt_ids)
        if self.group_ids is None:
            return wanted
        return frozenset(Olt.objects.filter(self.condition(""), id__in=wanted).values_list("id", flat=True))

    def within(self, group_ids: Iterable[int]) -> "OltScope":
        wanted = frozenset(group_ids)
        return OltScope(wanted if self.group_ids is None else self.group_ids & wanted)


def visible_reasons(error: InventoryError, scope: OltScope) -> Iterator[tuple[str, str]]:
    """Return column and reason of each problem, without details of OLTs out of scope."""
    owners = Olt.objects.filter(name__in={problem.owner for problem in error.problems if problem.owner})
    seen = {"", *scope.narrow(owners, "").values_list("name", flat=True)}
    for problem in error.problems:
        taken = _("this name is taken") if problem.column == "name" else _("this address and port are taken")
        yield problem.column, problem.reason if problem.owner in seen else taken


EVERYTHING = OltScope()
NOTHING = OltScope(frozenset())


def scope_of(user: AbstractBaseUser | AnonymousUser) -> OltScope:
    """Return a user's scope, cached per request; empty without a role."""
    known: OltScope | None = getattr(user, "_olt_scope", None)
    if known is None:
        known = NOTHING
        if isinstance(user, User) and role_of(user) is not None:
            known = OltScope(groups_of(user).olt_group_ids or None)
        limit_scope(user, known)
    return known


def limit_scope(user: AbstractBaseUser | AnonymousUser, scope: OltScope) -> None:
    """Limit the user's scope for this request: a token may see less than its owner."""
    user._olt_scope = scope  # type: ignore[union-attr]
