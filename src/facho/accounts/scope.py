"""Which OLTs a user may see. Every page and every answer of the API is narrowed by this, and by nothing else."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeVar

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.db.models import Model, Q, QuerySet

from facho.accounts.models import ProfileGroup
from facho.hosts.models import Olt

Row = TypeVar("Row", bound=Model)


@dataclass(frozen=True, slots=True)
class OltScope:
    """The OLTs that somebody may see: all of them, or those of some groups, which may be none."""

    group_ids: frozenset[int] | None = None

    @property
    def is_everything(self) -> bool:
        """Tell whether nothing is hidden."""
        return self.group_ids is None

    def condition(self, olt: str = "olt") -> Q:
        """Match the rows whose OLT is in scope; `olt` is the way from the row to it, empty for OLTs themselves."""
        if self.group_ids is None:
            return Q()
        return Q(**{f"{olt}__group_id__in" if olt else "group_id__in": self.group_ids})

    def narrow(self, rows: QuerySet[Row], olt: str = "olt") -> QuerySet[Row]:
        """Keep the rows whose OLT is in scope."""
        return rows.filter(self.condition(olt))

    def allows(self, olt_id: int) -> bool:
        """Tell whether one OLT is in scope."""
        return olt_id in self.visible([olt_id])

    def visible(self, olt_ids: Iterable[int]) -> frozenset[int]:
        """Return those of these OLTs that are in scope; one query, or none when nothing is hidden."""
        wanted = frozenset(olt_ids)
        if self.group_ids is None:
            return wanted
        return frozenset(Olt.objects.filter(self.condition(""), id__in=wanted).values_list("id", flat=True))

    def within(self, group_ids: Iterable[int]) -> "OltScope":
        """Return what is left of this scope within some groups."""
        wanted = frozenset(group_ids)
        return OltScope(wanted if self.group_ids is None else self.group_ids & wanted)


EVERYTHING = OltScope()
NOTHING = OltScope(frozenset())


def scope_of(user: AbstractBaseUser | AnonymousUser) -> OltScope:
    """Return what a user may see; asked once a request, since it is a query. Who is nobody sees nothing."""
    known: OltScope | None = getattr(user, "_olt_scope", None)
    if known is None:
        known = _load_scope(user.pk) if user.pk else NOTHING
        limit_scope(user, known)
    return known


def limit_scope(user: AbstractBaseUser | AnonymousUser, scope: OltScope) -> None:
    """Let this be what the user may see in this request: a token may show less than its owner sees."""
    user._olt_scope = scope  # type: ignore[union-attr]


def _load_scope(user_id: int) -> OltScope:
    groups = ProfileGroup.objects.filter(profile__user_id=user_id)
    return OltScope(frozenset(groups.values_list("oltgroup_id", flat=True)) or None)
