"""Headers and cookies of every page, what is logged of refused requests, and the two forms of a line of the log."""

import json
import logging
import re
import zlib
from collections.abc import AsyncIterator, Callable
from datetime import datetime
from threading import Lock
from typing import Any

from django.http import HttpRequest, HttpResponseBase
from django.middleware.common import CommonMiddleware
from django.middleware.gzip import GZipMiddleware

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "font-src 'self'; connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)

# What every answer carries: of Django by its middleware, of the gate before it from here.
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Frame-Options": "DENY",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}


class ContentSecurityPolicyMiddleware:
    """Lets a page run our own scripts and nothing else, whatever a device put into a description.

    A view may add one origin of images to its answer: that of the map's streets, which the operator set.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = self.get_response(request)
        origin = getattr(response, "image_origin", "")
        policy = POLICY.replace("img-src 'self'", f"img-src 'self' {origin}") if origin else POLICY
        response.headers["Content-Security-Policy"] = policy
        return response


# Of zlib: a gzip stream, at the level that Django has for whole answers.
GZIP_WINDOW_BITS, GZIP_LEVEL = 31, 6


class CompressionMiddleware(GZipMiddleware):
    """Compresses answers by gzip with a random length, which hides what a page contains (BREACH).

    An answer marked `no-transform` contains a secret that stays the same, and is sent as it is. Django masks the
    token of forms differently in every answer.
    """

    def process_response(self, request: HttpRequest, response: Any) -> Any:
        if "no-transform" in response.headers.get("Cache-Control", ""):
            return response
        content = response.streaming_content if response.streaming and response.is_async else None
        answer: Any = super().process_response(request, response)
        if content is not None and answer.headers.get("Content-Encoding") == "gzip":
            # Django's own are many streams, of which browsers read the first.
            answer.streaming_content = _compress_pieces(content)
        return answer


async def _compress_pieces(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    stream = zlib.compressobj(GZIP_LEVEL, zlib.DEFLATED, GZIP_WINDOW_BITS)
    async for piece in pieces:
        if compressed := stream.compress(piece):
            yield compressed
    yield stream.flush()


class AddressMiddleware(CommonMiddleware):
    """Leads a reader whose address lacks its last slash on; a change that was sent there is refused.

    Programs repeat a redirected POST as a GET: nothing would be changed, and the answer would look as if it were.
    """

    def should_redirect_with_slash(self, request: HttpRequest) -> bool:
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


class Strangers(logging.Filter):
    """Keeps what strangers provoke from filling the log: few lines a minute of each kind, without tracebacks."""

    LINES_PER_MINUTE = 20

    def __init__(self) -> None:
        super().__init__()
        self._lock = Lock()
        # By logger and level: when the minute began, and how many lines came in it.
        self._minutes: dict[tuple[str, int], tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Let the first lines of a minute pass; the first of the next one says how many did not."""
        # Django calls what it suspects an error.
        if record.levelno < logging.ERROR or record.name.startswith("django.security"):
            record.exc_info = record.exc_text = None
        with self._lock:
            key = record.name, record.levelno
            begun_at, count = self._minutes.get(key, (0.0, 0))
            left_out = 0
            if record.created - begun_at >= 60 or record.created < begun_at:
                begun_at, count, left_out = record.created, 0, count - self.LINES_PER_MINUTE
            self._minutes[key] = begun_at, count + 1
        if left_out > 0:
            record.msg, record.args = f"{record.getMessage()} (and {left_out} lines that were left out)", ()
        return count < self.LINES_PER_MINUTE


class LineFormatter(logging.Formatter):
    """A line for people; the time has its offset, so that logs of machines in two zones can be compared."""

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:
        return _moment(record)


# A name and the place of its value in the text of our events, such as `olt=%s`.
FIELD = re.compile(r"(?:(\w+)=)?%[-+ #0]*\d*(?:\.\d+)?[sdrfx]")
OWN_FIELDS = ("time", "level", "logger", "event", "message", "error")


class JsonFormatter(logging.Formatter):
    """One JSON object a line, for programs: the event's name and each of its values under their own names."""

    def format(self, record: logging.LogRecord) -> str:
        """Write the record with what its text names; no field replaces a standard one."""
        message = record.getMessage()
        line: dict[str, object] = {
            "time": _moment(record),
            "level": record.levelname,
            "logger": record.name,
            "message": message,
        }
        if re.fullmatch(r"[a-z_]+\.[a-z_]+", event := message.partition(" ")[0]):
            line["event"] = event
        names, values = FIELD.findall(str(record.msg)), record.args if isinstance(record.args, tuple) else ()
        if len(names) == len(values):
            named = zip(names, values, strict=True)
            line |= {name: _plain(value) for name, value in named if name and name not in OWN_FIELDS}
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)


def _plain(value: object) -> object:
    return value if isinstance(value, bool | int | float) or value is None else str(value)


def _moment(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created).astimezone().isoformat(timespec="milliseconds")
