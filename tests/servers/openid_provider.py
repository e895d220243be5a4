"""A private OpenID provider on a free loopback port: `openid_app.py` in a process of its own."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from servers.child import end_with_parent

CLIENT, CLIENT_SECRET = "facho", "s3cret+/%"

TESTS = Path(__file__).resolve().parents[1]
START_SECONDS = 30
STOP_SECONDS = 10


@dataclass(frozen=True, slots=True)
class OpenIdProvider:
    """A running provider; people are made before they sign on."""

    issuer: str

    def set_person(self, subject: str, **claims: Any) -> None:
        """Say who somebody is from now on."""
        self._put(f"/users/{quote(subject)}", claims)

    def spoil(self, how: str) -> None:
        """Answer wrongly from now on: see `openid_app.Spoiled`; an empty word for the truth."""
        self._put("/spoil", {"how": how})

    def consent(self, address: str, subject: str) -> str:
        """Be somebody on the provider's page at an address; return where it leads."""
        path = address.removeprefix(self.issuer)
        body, kind = urlencode({"sub": subject}), "application/x-www-form-urlencoded"
        return self._ask("POST", path, body, kind).headers["Location"]

    def _put(self, path: str, content: dict[str, Any]) -> None:
        assert self._ask("PUT", path, json.dumps(content), "application/json").status == HTTPStatus.NO_CONTENT

    def _ask(self, method: str, path: str, body: str, kind: str) -> HTTPResponse:
        connection = HTTPConnection(urlsplit(self.issuer).netloc, timeout=START_SECONDS)
        connection.request(method, path, body, {"Content-Type": kind})
        answer = connection.getresponse()
        connection.close()
        return answer


@contextmanager
def openid_provider() -> Iterator[OpenIdProvider]:
    """Run a provider on a free loopback port."""
    process = subprocess.Popen(
        [sys.executable, "-m", "servers.openid_app"],
        cwd=TESTS,
        env=os.environ | {"AUTHLIB_INSECURE_TRANSPORT": "1", "PYTHONWARNINGS": "ignore", "PYTHONPATH": str(TESTS)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        process_group=0,
        preexec_fn=end_with_parent,
    )
    assert process.stdout is not None
    try:
        yield OpenIdProvider(process.stdout.readline().strip())
    finally:
        process.kill()
        process.wait(STOP_SECONDS)
        process.stdout.close()
