"""Stores a file in S3-compatible storage: one PUT, signed by AWS Signature Version 4, in the path style."""

import hashlib
import hmac
import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from gettext import gettext as _
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from pathlib import Path
from urllib.parse import quote, urlsplit

from facho.core.env import Environment
from facho.core.product import BAD_CONFIGURATION, OperatorError

ALGORITHM = "AWS4-HMAC-SHA256"
# Of a server that stops reading; a backup of any size may take longer in all.
SILENT_SECONDS = 60.0
# The largest object of one PUT.
MAX_BYTES = 5 * 1024**3
MAX_ANSWER_BYTES = 4096
TARGET = re.compile(r"s3://([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])/(\S*)")


@dataclass(frozen=True, slots=True)
class S3Account:
    endpoint: str
    region: str
    access_key: str
    secret_key: str


class StorageRefused(OperatorError):
    """The storage did not take the file; the local copy stays."""


def account_of(environment: Environment) -> S3Account:
    """Read the account from the settings; the keys stand in a file, so that no process list shows them."""
    endpoint, file = environment["FACHO_S3_ENDPOINT"], environment["FACHO_S3_KEYS_FILE"]
    if not endpoint or not file:
        text = _("S3 storage needs FACHO_S3_ENDPOINT and FACHO_S3_KEYS_FILE.")
        raise OperatorError(text, status=BAD_CONFIGURATION)
    try:
        access_key, secret_key = file.read_text().split()
    except (OSError, ValueError) as error:
        text = _("%s must contain two words, the access key and the secret key, and be readable by this user.")
        raise OperatorError(text % file, status=BAD_CONFIGURATION) from error
    return S3Account(endpoint, environment["FACHO_S3_REGION"], access_key, secret_key)


def split_target(text: str, *, name: str) -> tuple[str, str]:
    """Return bucket and key; a key that ends in a slash, or is empty, is a folder for the file's name."""
    match = TARGET.fullmatch(text)
    if not match:
        raise OperatorError(_("%s is not s3://BUCKET/NAME") % repr(text))
    bucket, key = match.groups()
    return bucket, f"{key}{name}" if not key or key.endswith("/") else key


def store(file: Path, target: str, account: S3Account, *, now: datetime) -> str:
    """Put the file there, and return its address."""
    bucket, key = split_target(target, name=file.name)
    size = file.stat().st_size
    if size > MAX_BYTES:
        raise StorageRefused(_("The backup is %s GiB, more than one request can carry.") % (size >> 30))
    with file.open("rb") as body:
        digest = hashlib.file_digest(body, "sha256").hexdigest()
    parts = urlsplit(account.endpoint)
    path = f"{parts.path.rstrip('/')}/{bucket}/{quote(key, safe='/-_.~')}"
    at = f"{now.astimezone(UTC):%Y%m%dT%H%M%SZ}"
    headers = {"host": parts.netloc, "x-amz-content-sha256": digest, "x-amz-date": at}
    signed = {**headers, "authorization": authorization(account, path, headers), "content-length": str(size)}
    host = parts.hostname or ""
    secure = parts.scheme == "https"
    connection = (
        HTTPSConnection(host, parts.port, timeout=SILENT_SECONDS, context=ssl.create_default_context())
        if secure
        else HTTPConnection(host, parts.port, timeout=SILENT_SECONDS)
    )
    try:
        with file.open("rb") as body:
            connection.request("PUT", path, body, signed)
        answer = connection.getresponse()
        text = answer.read(MAX_ANSWER_BYTES).decode(errors="replace")
    except (OSError, HTTPException) as error:
        reason = getattr(error, "strerror", None) or type(error).__name__
        raise StorageRefused(
            _("The storage at %(host)s did not answer: %(why)s.") % {"host": host, "why": reason}
        ) from error
    finally:
        connection.close()
    if answer.status != 200:
        code = re.search(r"<Code>(\w{1,60})</Code>", text)
        why = f"{answer.status} {code[1] if code else ''}".strip()
        raise StorageRefused(_("The storage refused the backup: %s.") % why)
    return f"s3://{bucket}/{key}"


def authorization(account: S3Account, path: str, headers: Mapping[str, str]) -> str:
    """Sign a PUT of this path with these headers, whose names are in lower case."""
    names = ";".join(sorted(headers))
    canonical_headers = "".join(f"{name}:{headers[name]}\n" for name in sorted(headers))
    request = "\n".join(["PUT", path, "", canonical_headers, names, headers["x-amz-content-sha256"]])
    at = headers["x-amz-date"]
    scope = f"{at[:8]}/{account.region}/s3/aws4_request"
    text = "\n".join([ALGORITHM, at, scope, hashlib.sha256(request.encode()).hexdigest()])
    key = f"AWS4{account.secret_key}".encode()
    for part in (*scope.split("/"), text):
        key = hmac.digest(key, part.encode(), "sha256")
    return f"{ALGORITHM} Credential={account.access_key}/{scope},SignedHeaders={names},Signature={key.hex()}"
