"""Which OLTs a user may see. Every page and every answer of the API is narrowed by this, and by nothing else."""

from dataclasses import dataclass
from typing import TypeVar

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.db.models import Model, Q, QuerySet

from facho.accounts.models import Profile
from facho.hosts.models import Olt

Row = TypeVar("Row", bound=Model)


@dataclass(frozen=True, slots=True)
class OltScope:
    """The OLTs that somebody may see: all of them, or those of some groups."""

    group_ids: frozenset[int] = frozenset()

    @property
    def is_everything(self) -> bool:
        """Tell whether nothing is hidden."""
        return not self.group_ids

    def condition(self, olt: str = "olt") -> Q:
        """Match the rows whose OLT is in scope; `olt` is the way from the row to it, empty for OLTs themselves."""
        if self.is_everything:
            return Q()
        return Q(**{f"{olt}__group_id__in" if olt else "group_id__in": self.group_ids})

    def narrow(self, rows: QuerySet[Row], olt: str = "olt") -> QuerySet[Row]:
        """Keep the rows whose OLT is in scope."""
        return rows.filter(self.condition(olt))

    def allows(self, olt_id: int) -> bool:
        """Tell whether one OLT is in scope."""
        return self.is_everything or Olt.objects.filter(self.condition(""), id=olt_id).exists()


EVERYTHING = OltScope()


def scope_of(user: AbstractBaseUser | AnonymousUser) -> OltScope:
    """Return what a user may see; asked once a request, since it is a query."""
    known: OltScope | None = getattr(user, "_olt_scope", None)
    if known is None:
        groups = Profile.olt_groups.through.objects.filter(profile__user_id=user.pk or 0)
        known = OltScope(frozenset(groups.values_list("oltgroup_id", flat=True)))
        user._olt_scope = known  # type: ignore[union-attr]
    return known
