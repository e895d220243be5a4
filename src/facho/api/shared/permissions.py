"""Bearer tokens, and what a role may do: every role reads, operators and administrators write."""

from collections.abc import Collection, Iterable
from ipaddress import IPv6Address, ip_address
from typing import TYPE_CHECKING

from django.contrib.auth.models import User
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework.authentication import BaseAuthentication, get_authorization_header
from rest_framework.exceptions import AuthenticationFailed, PermissionDenied, Throttled
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request

from facho.accounts.roles import NO_ROLE, Role, role_of
from facho.accounts.scope import scope_of
from facho.accounts.throttle import Guess, Tries, address_of
from facho.api.tokens import Grant, verify_token

if TYPE_CHECKING:
    from drf_spectacular.openapi import AutoSchema
    from rest_framework.views import APIView  # whose module imports this one through the settings


KEYWORD = "Bearer"
# A proxy on this machine makes everyone look local; the usual ones add at least one of these.
FORWARDING_HEADERS = ("forwarded", "via", "x-forwarded-", "x-real-ip")


class BearerTokenAuthentication(BaseAuthentication):
    """Accepts API tokens; `request.auth` is then the Grant."""

    def authenticate(self, request: Request) -> tuple[User, Grant] | None:
        """Return user and grant, None without a token, or raise."""
        keyword, _space, token = get_authorization_header(request).partition(b" ")
        if keyword.lower() != KEYWORD.lower().encode():
            return None
        return judge_token(request, token.strip().decode("ascii", "replace"))

    def authenticate_header(self, request: Request) -> str:
        """Makes unauthenticated requests a 401 instead of a 403."""
        return KEYWORD


def judge_token(request: Request, token: str) -> tuple[User, Grant]:
    """Return user and grant of a token, or raise."""
    now = timezone.now()
    grant = verify_token(token, now=now)
    if grant is None:
        # Refuse a wrong token, and throttle its sender after many; a valid token is still accepted from there.
        # Tokens cannot be guessed: the throttle protects the log and the database from a runaway client.
        if wait := Tries(Guess.TOKEN_FROM_ADDRESS, address_of(request)).count(now):
            raise Throttled(wait=wait.total_seconds())
        raise AuthenticationFailed(gettext_lazy("The token is invalid or has expired."))
    return grant.user, grant


class BearerTokenScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    target_class = "facho.api.shared.permissions.BearerTokenAuthentication"
    name = "bearerToken"

    def get_security_definition(self, auto_schema: "AutoSchema") -> dict[str, str]:
        return {"type": "http", "scheme": "bearer"}


def role_of_request(request: Request) -> Role | None:
    return request.auth.role if isinstance(request.auth, Grant) else role_of(request.user)


class ReadOrOperate(BasePermission):
    """Every role reads; operators and administrators write."""

    reads_from = Role.VIEWER
    writes_from = Role.OPERATOR

    def has_permission(self, request: Request, view: "APIView") -> bool:
        if not request.user.is_authenticated:
            return False
        role = role_of_request(request)
        if role is None:
            raise PermissionDenied(NO_ROLE)
        return role.includes(self.reads_from if request.method in SAFE_METHODS else self.writes_from)


class ReadOrAdminister(ReadOrOperate):
    """Every role reads; administrators write: for settings of the product itself."""

    writes_from = Role.ADMIN


class ReadOrAdministerAll(ReadOrAdminister):
    """Every role reads; administrators who see every OLT write: the change affects all of them."""

    limited_methods: Collection[str] = SAFE_METHODS

    def has_permission(self, request: Request, view: "APIView") -> bool:
        if not super().has_permission(request, view):
            return False
        if request.method not in self.limited_methods and not scope_of(request.user).is_everything:
            raise PermissionDenied(_("This affects OLTs outside your scope."))
        return True


class AdministerAll(ReadOrAdministerAll):
    """Administrators who see every OLT, for reading too: accounts and their tokens."""

    reads_from = Role.ADMIN
    limited_methods = ()


class FromThisMachine(BasePermission):
    """Allows connections from loopback, unless they are proxied for someone else."""

    def has_permission(self, request: Request, view: "APIView") -> bool:
        """Trust the connection's address only; headers can only lead to a refusal."""
        is_forwarded = any(name.lower().startswith(FORWARDING_HEADERS) for name in request.headers)
        return not is_forwarded and is_loopback(request.META.get("REMOTE_ADDR", ""))


class AnyAccepted(DefaultContentNegotiation):
    """Ignores the Accept header: one format for answers and one for errors."""

    def select_renderer(
        self, request: Request, renderers: Iterable[BaseRenderer], format_suffix: str | None = None
    ) -> tuple[BaseRenderer, str]:
        (renderer,) = renderers
        return renderer, renderer.media_type


def is_loopback(address: str) -> bool:
    """Whether a connection comes from this machine; False without an address."""
    try:
        ip = ip_address(address)
    except ValueError:
        return False
    mapped = ip.ipv4_mapped if isinstance(ip, IPv6Address) else None
    return (mapped or ip).is_loopback
