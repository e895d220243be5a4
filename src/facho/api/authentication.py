"""Lets a request prove who it is with `Authorization: Bearer <token>`."""

from datetime import datetime
from typing import TYPE_CHECKING, NoReturn

from django.contrib.auth.models import User
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework.authentication import BaseAuthentication, get_authorization_header
from rest_framework.exceptions import AuthenticationFailed, Throttled
from rest_framework.request import Request

from facho.accounts.roles import Role, role_of
from facho.accounts.throttle import Guess, Tries, address_of
from facho.api.tokens import Grant, verify_token

if TYPE_CHECKING:
    from drf_spectacular.openapi import AutoSchema

KEYWORD = "Bearer"


class BearerTokenAuthentication(BaseAuthentication):
    """Accepts our API tokens; `request.auth` is then the Grant."""

    def authenticate(self, request: Request) -> tuple[User, Grant] | None:
        """Return the user and the grant, nothing when the request carries no token, or refuse it."""
        keyword, _space, token = get_authorization_header(request).partition(b" ")
        if keyword.lower() != KEYWORD.lower().encode():
            return None
        now = timezone.now()
        grant = verify_token(token.strip().decode("ascii", "replace"), now=now)
        if grant is None:
            _refuse(request, now)
        return grant.user, grant

    def authenticate_header(self, request: Request) -> str:
        """Make the answer to nobody a 401 instead of a 403."""
        return KEYWORD


def _refuse(request: Request, now: datetime) -> NoReturn:
    """Refuse a wrong token, and let its sender wait after many. A right one from there is let in all the same.

    Nobody guesses a token: the wait keeps the log and the database from a program that does not stop.
    """
    if wait := Tries(Guess.TOKEN_FROM_ADDRESS, address_of(request)).count(now):
        raise Throttled(wait=wait.total_seconds())
    raise AuthenticationFailed(_("The token is not valid, or no longer."))


class BearerTokenScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """Describes the token in the OpenAPI document."""

    target_class = "facho.api.authentication.BearerTokenAuthentication"
    name = "bearerToken"

    def get_security_definition(self, auto_schema: "AutoSchema") -> dict[str, str]:
        """Say how to send it."""
        return {"type": "http", "scheme": "bearer"}


def role_of_request(request: Request) -> Role | None:
    """Return the role that permissions judge: the token's, or else that of the user who is logged in."""
    return request.auth.role if isinstance(request.auth, Grant) else role_of(request.user)
