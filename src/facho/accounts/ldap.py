"""Asks an LDAP directory whether a name and a password belong together, and for the person's groups. TLS always.

The library is synchronous: every step has a time-out, and few people at a time wait for the directory.
"""

import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from threading import BoundedSemaphore
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from ldap3 import NONE, SUBTREE, Connection, Server, Tls
from ldap3.core.exceptions import LDAPException, LDAPStartTLSError
from ldap3.utils.conv import escape_filter_chars

from facho.accounts.sign_on import MOST_GROUPS, Identity

CONNECT_SECONDS = 3
STEP_SECONDS = 4
# Of the eight threads that answer pages.
MOST_AT_ONCE = 3
WAIT_SECONDS = 1.0
LONGEST_NAME = 150
LONGEST_PASSWORD = 1_000
# What never changes and is never given again: of OpenLDAP and others, and of Active Directory.
_IDENTIFIERS = ("entryUUID", "objectGUID")
_NAMES = ("uid", "sAMAccountName")
_ATTRIBUTES = [*_IDENTIFIERS, *_NAMES, "mail", "memberOf"]
_places = BoundedSemaphore(MOST_AT_ONCE)


class DirectoryAway(Exception):
    """The directory did not answer, or not as it should; the reason is for the log."""


class VerifiedTls(Tls):
    """TLS as Python's own defaults have it, certificate and host name verified; the library has a check of its own."""

    def wrap_socket(self, connection: Any, do_handshake: bool = False) -> None:
        """Put TLS around an open connection."""
        trusted = ssl.create_default_context(cafile=self.ca_certs_file)
        connection.socket = trusted.wrap_socket(connection.socket, server_hostname=connection.server.host)


def identify(name: str, password: str) -> Identity | None:
    """Return the person's entry, None where there is none or several; an empty password would bind anonymously."""
    name = name.strip()
    if not name or not password or len(name) > LONGEST_NAME or len(password) > LONGEST_PASSWORD:
        return None
    with _connected() as connection:
        wanted = settings.FACHO_LDAP_USER_FILTER.replace("{name}", escape_filter_chars(name))
        found = list(_search(connection, settings.FACHO_LDAP_USER_BASE, wanted, _ATTRIBUTES, most=2))
        # Ambiguous name: no match.
        if len(found) != 1:
            return None
        dn, attributes = found[0]
        groups = frozenset(_groups(connection, dn, attributes))
        if not connection.rebind(user=dn, password=password):
            return None
    identifier = next((attributes[key][0] for key in _IDENTIFIERS if attributes.get(key)), None)
    if identifier is None:
        raise DirectoryAway("a person without entryUUID and objectGUID")
    return Identity(
        issuer=f"ldap:{settings.FACHO_LDAP_USER_BASE}"[:255],
        subject=identifier.decode() if attributes.get(_IDENTIFIERS[0]) else identifier.hex(),
        name=next((_text(attributes[key]) for key in _NAMES if attributes.get(key)), name),
        email=_text(attributes.get("mail") or [])[:254],
        groups=groups,
    )


def check_directory() -> None:
    """Connect and bind as a sign-on does; DirectoryAway says what does not work."""
    with _connected():
        pass


@contextmanager
def _connected() -> Iterator[Connection]:
    """Connect by TLS with a verified certificate, and bind as the account that searches."""
    if not _places.acquire(timeout=WAIT_SECONDS):
        raise DirectoryAway("too many wait for it")
    try:
        connection = _connection()
        try:
            if not connection.server.ssl and not connection.start_tls():
                raise LDAPStartTLSError("the server has no StartTLS")
            if not connection.bind():
                raise DirectoryAway(f"the account that searches is refused: {connection.result['description']}")
            yield connection
        finally:
            connection.unbind()
    except (LDAPException, OSError, ValueError) as error:
        raise DirectoryAway(f"{type(error).__name__}: {error}"[:300]) from error
    finally:
        _places.release()


def _connection() -> Connection:
    url, ca_file = urlsplit(settings.FACHO_LDAP_URL), settings.FACHO_LDAP_CA_FILE
    tls = VerifiedTls(ca_certs_file=str(ca_file) if ca_file else None)
    server = Server(
        str(url.hostname),
        url.port,
        use_ssl=url.scheme == "ldaps",
        tls=tls,
        get_info=NONE,
        connect_timeout=CONNECT_SECONDS,
    )
    path = settings.FACHO_LDAP_BIND_PASSWORD_FILE
    return Connection(
        server,
        user=settings.FACHO_LDAP_BIND_DN or None,
        password=path.read_text().strip() if path else None,
        receive_timeout=STEP_SECONDS,
        # Another server would be sent the password.
        auto_referrals=False,
        check_names=False,
    )


def _search(
    connection: Connection, base: str, wanted: str, attributes: list[str], *, most: int
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    connection.search(base, wanted, SUBTREE, attributes=attributes, size_limit=most, time_limit=STEP_SECONDS)
    for entry in connection.response or []:
        if entry["type"] == "searchResEntry":
            yield entry["dn"], entry["raw_attributes"]


def _groups(connection: Connection, dn: str, attributes: Mapping[str, Any]) -> Iterator[str]:
    """Return the DNs of groups: by a search where one is set, else as the entry of the person has them."""
    base = settings.FACHO_LDAP_GROUP_BASE
    if not base:
        yield from (_text([value]) for value in attributes.get("memberOf") or ())
        return
    wanted = settings.FACHO_LDAP_GROUP_FILTER.replace("{dn}", escape_filter_chars(dn))
    yield from (group for group, _none in _search(connection, base, wanted, ["1.1"], most=MOST_GROUPS))


def _text(values: list[bytes]) -> str:
    return values[0].decode(errors="replace") if values else ""
