"""Narrows what the API shows to the OLTs that the user of the request, or the token, may see."""

from typing import TYPE_CHECKING, Any

from django.db.models import QuerySet
from rest_framework.exceptions import NotFound
from rest_framework.request import Request

from facho.accounts.scope import scope_of

if TYPE_CHECKING:
    from rest_framework.generics import GenericAPIView

    _Views = GenericAPIView[Any]
else:
    _Views = object  # joined to a view, whose stubs alone take type parameters


class ScopedRows(_Views):
    """Leaves out of a view's rows those of OLTs that are not shown; addressed by their id they are not there."""

    # The way from a row to its OLT; empty for OLTs themselves.
    olt_path = "olt"

    def get_queryset(self) -> QuerySet[Any]:
        """Narrow the rows of the view."""
        return scope_of(self.request.user).narrow(super().get_queryset(), self.olt_path)


def must_see(request: Request, rows: QuerySet[Any], olt_path: str = "olt") -> None:
    """Answer 404 unless one of the rows is there and may be seen."""
    if not scope_of(request.user).narrow(rows, olt_path).exists():
        raise NotFound
