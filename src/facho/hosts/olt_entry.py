"""One OLT as an operator writes it, and the rules for its text. Pure: no rows, no network."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, fields
from ipaddress import ip_address
from typing import NamedTuple

from django.utils.text import capfirst
from django.utils.translation import gettext as _

from facho.hosts.models import Olt, SnmpVersionChoice
from facho.infrastructure.secrets import Secret
from facho.polling.domain.planning import NO_GROUP
from facho.polling.snmp.target import MAX_USER_BYTES, MIN_PASSPHRASE_BYTES, AuthProtocol, PrivProtocol

AUTO = "auto"
NONE = "none"
AUTH_PROTOCOLS = tuple(map(str, AuthProtocol))
PRIV_PROTOCOLS = tuple(map(str, PrivProtocol))

MAX_NAME = 100
MAX_HOST = 253
MAX_USER = 64
MAX_GROUP = 60
MAX_COMMUNITY_BYTES = 255
MAX_TRAP_ADDRESSES = 200
_LIMITS = {"name": MAX_NAME, "host": MAX_HOST, "v3_user": MAX_USER, "group": MAX_GROUP}

NO_SECRET = Secret("")
SECRET_COLUMNS = ("community", "v3_auth_key", "v3_priv_key")
# Credentials, the user name included: erased when the OLT gets another host or port.
CREDENTIAL_COLUMNS = ("community", "v3_user", "v3_auth_key", "v3_priv_key")


@dataclass(frozen=True, slots=True)
class OltEntry:
    """One OLT as text; empty keeps the stored value (secrets only while host and port stay), or takes the default."""

    name: str
    host: str
    port: str = ""
    vendor: str = ""
    version: str = ""
    community: Secret = NO_SECRET
    v3_user: str = ""
    v3_auth_protocol: str = ""
    v3_auth_key: Secret = NO_SECRET
    v3_priv_protocol: str = ""
    v3_priv_key: Secret = NO_SECRET
    poller_group: str = ""
    group: str = ""
    # Separated by commas.
    trap_addresses: str = ""
    line: int | None = field(default=None, compare=False)


COLUMNS = tuple(column.name for column in fields(OltEntry) if column.name != "line")
V3_COLUMNS = tuple(name for name in COLUMNS if name.startswith("v3_"))


class Fault(NamedTuple):
    column: str
    reason: str


def find_faults(entry: OltEntry, *, vendors: Collection[str], groups: Collection[str]) -> Iterator[Fault]:
    labels = {"name": _("name"), "host": _("host"), "v3_user": _("SNMPv3 user"), "group": _("group")}
    for column, limit in _LIMITS.items():
        reasons = _text_faults(labels[column], getattr(entry, column), limit, required=column in ("name", "host"))
        yield from (Fault(column, reason) for reason in reasons)
    if len(entry.v3_user.encode()) > MAX_USER_BYTES:
        yield Fault("v3_user", _("SNMPv3 user is longer than %s bytes") % MAX_USER_BYTES)
    if entry.port and parse_port(entry.port) is None:
        yield Fault("port", _('port "%s" is not a number from 1 to 65535') % entry.port)
    if entry.version and entry.version not in SnmpVersionChoice.values:
        yield Fault("version", _('SNMP version "%s" is not one of 1, 2c, 3') % entry.version)
    if entry.vendor and find_vendor(entry.vendor, vendors) is None:
        names = {"vendor": entry.vendor, "known": ", ".join((AUTO, *sorted(vendors)))}
        yield Fault("vendor", _('vendor "%(vendor)s" is unknown; known are: %(known)s') % names)
    if entry.poller_group not in ("", NO_GROUP):
        yield from (Fault("poller_group", reason) for reason in group_faults(entry.poller_group, groups))
    yield from (Fault("trap_addresses", reason) for reason in trap_address_faults(entry.trap_addresses))
    yield from _protocol_faults(entry)
    yield from _secret_faults(entry)


def trap_address_faults(text: str) -> Iterator[str]:
    """Find what is not a list of numeric addresses; `none` empties it."""
    if len(text) > MAX_TRAP_ADDRESSES:
        yield _("trap addresses are longer than %s characters") % MAX_TRAP_ADDRESSES
    elif text.lower() != NONE:
        for word in filter(None, map(str.strip, text.split(","))):
            try:
                ip_address(word)
            except ValueError:
                yield _("%(text)s is not an IP address.") % {"text": word}


def group_faults(group: str, groups: Collection[str]) -> Iterator[str]:
    if group in groups:
        return
    if groups:
        text = _('poller group "%(group)s" is unknown; known are: %(known)s')
        yield text % {"group": group, "known": ", ".join(sorted(groups))}
    else:
        yield _('poller group "%s" is unknown: FACHO_POLLER_GROUPS names none') % group


def parse_port(text: str) -> int | None:
    """None if it is not a valid port."""
    # isdecimal alone accepts the digits of every script.
    number = int(text) if text.isascii() and text.isdecimal() and len(text) <= 5 else 0
    return number if 1 <= number <= 65_535 else None


def find_vendor(text: str, vendors: Collection[str]) -> str | None:
    """Return the key of a definition by key or prefix, if one is the beginning of all that match; empty for `auto`."""
    wanted = text.lower()
    if wanted == AUTO:
        return ""
    if wanted in vendors:
        return wanted
    beginnings = [key for key in vendors if key.startswith(wanted)]
    shortest = min(beginnings, key=len, default="")
    # The first family of a brand has the plain name; others add to it.
    return shortest if shortest and all(key.startswith(shortest) for key in beginnings) else None


def _text_faults(label: str, text: str, limit: int, *, required: bool) -> Iterator[str]:
    if required and not text:
        yield _("%s is missing") % label
    if len(text) > limit:
        yield _("%(label)s is longer than %(limit)s characters") % {"label": label, "limit": limit}
    if not text.isprintable():
        yield _("%s contains a character that cannot be printed") % label
    if text != text.strip():
        yield _("%s begins or ends with a space") % label


def _protocol_faults(entry: OltEntry) -> Iterator[Fault]:
    if entry.v3_auth_protocol and entry.v3_auth_protocol.upper() not in (*AUTH_PROTOCOLS, NONE.upper()):
        known = ", ".join((*AUTH_PROTOCOLS, NONE))
        yield Fault("v3_auth_protocol", _("authentication protocol is not one of %s") % known)
    if entry.v3_priv_protocol and entry.v3_priv_protocol.upper() not in (*PRIV_PROTOCOLS, NONE.upper()):
        known = ", ".join((*PRIV_PROTOCOLS, NONE))
        yield Fault("v3_priv_protocol", _("privacy protocol is not one of %s") % known)


def _secret_faults(entry: OltEntry) -> Iterator[Fault]:
    """Check secrets without repeating them in the messages."""
    if len(entry.community.reveal().encode()) > MAX_COMMUNITY_BYTES:
        yield Fault("community", _("community is longer than %s bytes") % MAX_COMMUNITY_BYTES)
    for name in SECRET_COLUMNS:
        if not getattr(entry, name).reveal().isprintable():
            yield Fault(name, _("%s contains a character that cannot be printed") % name)
    for name in ("v3_auth_key", "v3_priv_key"):
        if 0 < len(getattr(entry, name).reveal()) < MIN_PASSPHRASE_BYTES:
            bounds = {"name": name, "limit": MIN_PASSPHRASE_BYTES}
            yield Fault(name, _("%(name)s is shorter than %(limit)s characters") % bounds)


def label_of(column: str) -> str:
    return str(capfirst(getattr(Olt._meta.get_field(column), "verbose_name", column)))
