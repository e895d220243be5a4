"""Headers and marks that every page carries, and what is told of requests that none is given for."""

import logging
from collections.abc import Callable

from django.http import HttpRequest, HttpResponseBase
from django.middleware.common import CommonMiddleware

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "font-src 'self'; connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)


class ContentSecurityPolicyMiddleware:
    """Lets a page run our own scripts and nothing else, whatever a device put into a description."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = self.get_response(request)
        response.headers["Content-Security-Policy"] = POLICY
        return response


class AddressMiddleware(CommonMiddleware):
    """Leads a reader whose address lacks its last slash on; a change that was sent there is refused.

    Programs repeat a redirected POST as a GET: nothing would be changed, and the answer would look as if it were.
    """

    def should_redirect_with_slash(self, request: HttpRequest) -> bool:
        """Redirect what only reads."""
        return request.method in ("GET", "HEAD") and super().should_redirect_with_slash(request)


class SecureCookiesMiddleware:
    """Keeps cookies that were given over TLS to TLS; without TLS, as on one's own machine, they would not come back."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = self.get_response(request)
        if request.is_secure():
            for cookie in response.cookies.values():
                cookie["secure"] = True
        return response


class WithoutTraceback(logging.Filter):
    """Tells what a stranger sent in one line: a traceback would say only how that was noticed, as often as he likes."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Let every record pass, without the traceback."""
        record.exc_info = record.exc_text = None
        return True
