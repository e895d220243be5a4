"""Who may do what: every user reads, operators and admins write, nobody else gets past the door."""

from typing import TYPE_CHECKING

from django.utils.translation import gettext as _
from rest_framework.exceptions import PermissionDenied
from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.request import Request

from facho.accounts.roles import Role
from facho.accounts.scope import scope_of
from facho.api.authentication import role_of_request

if TYPE_CHECKING:
    from rest_framework.views import APIView  # whose module imports this one through the settings


class ReadOrOperate(BasePermission):
    """Lets any user read, and those write whose role, or whose token's role, is operator at least."""

    writes_from = Role.OPERATOR

    def has_permission(self, request: Request, view: "APIView") -> bool:
        """Judge the method; nobody logged in and no token is a 401, too low a role a 403."""
        if not request.user.is_authenticated:
            return False
        if request.method in SAFE_METHODS:
            return True
        role = role_of_request(request)
        return role is not None and role.includes(self.writes_from)


class ReadOrAdminister(ReadOrOperate):
    """Lets any user read, and admins write: what decides how the product itself behaves."""

    writes_from = Role.ADMIN


class ReadOrAdministerAll(ReadOrAdminister):
    """Lets any user read, and admins write who see every OLT: what is written holds for all of them."""

    def has_permission(self, request: Request, view: "APIView") -> bool:
        """Judge the role first, then what may be seen."""
        if not super().has_permission(request, view):
            return False
        if request.method not in SAFE_METHODS and not scope_of(request.user).is_everything:
            raise PermissionDenied(_("This holds for OLTs that you may not see."))
        return True
