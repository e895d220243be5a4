"""Lets a request prove who it is with `Authorization: Bearer <token>`."""

from typing import TYPE_CHECKING

from django.contrib.auth.models import User
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework.authentication import BaseAuthentication, get_authorization_header
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from facho.accounts.roles import Role, role_of
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
        grant = verify_token(token.strip().decode("ascii", "replace"), now=timezone.now())
        if grant is None:
            raise AuthenticationFailed(_("The token is not valid, or no longer."))
        return grant.user, grant

    def authenticate_header(self, request: Request) -> str:
        """Make the answer to nobody a 401 instead of a 403."""
        return KEYWORD


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
