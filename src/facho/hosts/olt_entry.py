"""One OLT as an operator writes it, and the rules for its text. Pure: no rows, no network."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, fields

from django.utils.translation import gettext as _

from facho.hosts.models import SnmpVersion
from facho.hosts.secrets import Secret
from facho.polling.domain.poller_groups import NO_GROUP
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

NO_SECRET = Secret("")


@dataclass(frozen=True, slots=True)
class OltEntry:
    """One OLT, as text. What is empty keeps its stored value; a new OLT takes the default."""

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
    line: int | None = field(default=None, compare=False)


COLUMNS = tuple(column.name for column in fields(OltEntry) if column.name != "line")
SECRET_COLUMNS = ("community", "v3_auth_key", "v3_priv_key")
V3_COLUMNS = tuple(name for name in COLUMNS if name.startswith("v3_"))


def find_faults(entry: OltEntry, *, vendors: Collection[str], groups: Collection[str]) -> Iterator[str]:
    """Say everything that is wrong with the text alone."""
    yield from _text_faults(_("name"), entry.name, MAX_NAME, required=True)
    yield from _text_faults(_("host"), entry.host, MAX_HOST, required=True)
    yield from _text_faults(_("SNMPv3 user"), entry.v3_user, MAX_USER, required=False)
    yield from _text_faults(_("group"), entry.group, MAX_GROUP, required=False)
    if len(entry.v3_user.encode()) > MAX_USER_BYTES:
        yield _("SNMPv3 user is longer than %s bytes") % MAX_USER_BYTES
    if entry.port and parse_port(entry.port) is None:
        yield _('port "%s" is not a number from 1 to 65535') % entry.port
    if entry.version and entry.version not in SnmpVersion.values:
        yield _('SNMP version "%s" is not one of 1, 2c, 3') % entry.version
    if entry.vendor and find_vendor(entry.vendor, vendors) is None:
        yield _('vendor "%(vendor)s" is unknown; known are: %(known)s') % {
            "vendor": entry.vendor,
            "known": ", ".join((AUTO, *sorted(vendors))),
        }
    if entry.poller_group not in ("", NO_GROUP):
        yield from group_faults(entry.poller_group, groups)
    yield from _protocol_faults(entry)
    yield from _secret_faults(entry)


def group_faults(group: str, groups: Collection[str]) -> Iterator[str]:
    """Say that a group of pollers is unknown, and which are known."""
    if group in groups:
        return
    if groups:
        text = _('poller group "%(group)s" is unknown; known are: %(known)s')
        yield text % {"group": group, "known": ", ".join(sorted(groups))}
    else:
        yield _('poller group "%s" is unknown: FACHO_POLLER_GROUPS names none') % group


def parse_port(text: str) -> int | None:
    """Read a UDP port; nothing when it is none."""
    # isdecimal alone accepts the digits of every script.
    number = int(text) if text.isascii() and text.isdecimal() and len(text) <= 5 else 0
    return number if 1 <= number <= 65_535 else None


def find_vendor(text: str, vendors: Collection[str]) -> str | None:
    """Return the definition's key for a key or its unique beginning, and an empty text for `auto`."""
    wanted = text.lower()
    if wanted == AUTO:
        return ""
    if wanted in vendors:
        return wanted
    beginnings = [key for key in vendors if key.startswith(wanted)]
    return beginnings[0] if len(beginnings) == 1 else None


def _text_faults(label: str, text: str, limit: int, *, required: bool) -> Iterator[str]:
    if required and not text:
        yield _("%s is missing") % label
    if len(text) > limit:
        yield _("%(label)s is longer than %(limit)s characters") % {"label": label, "limit": limit}
    if not text.isprintable():
        yield _("%s holds a character that cannot be printed") % label
    if text != text.strip():
        yield _("%s begins or ends with a space") % label


def _protocol_faults(entry: OltEntry) -> Iterator[str]:
    if entry.v3_auth_protocol and entry.v3_auth_protocol.upper() not in (*AUTH_PROTOCOLS, NONE.upper()):
        yield _("authentication protocol is not one of %s") % ", ".join((*AUTH_PROTOCOLS, NONE))
    if entry.v3_priv_protocol and entry.v3_priv_protocol.upper() not in (*PRIV_PROTOCOLS, NONE.upper()):
        yield _("privacy protocol is not one of %s") % ", ".join((*PRIV_PROTOCOLS, NONE))


def _secret_faults(entry: OltEntry) -> Iterator[str]:
    """Judge secrets without repeating them."""
    if len(entry.community.reveal().encode()) > MAX_COMMUNITY_BYTES:
        yield _("community is longer than %s bytes") % MAX_COMMUNITY_BYTES
    for name in SECRET_COLUMNS:
        if not getattr(entry, name).reveal().isprintable():
            yield _("%s holds a character that cannot be printed") % name
    for name in ("v3_auth_key", "v3_priv_key"):
        if 0 < len(getattr(entry, name).reveal()) < MIN_PASSPHRASE_BYTES:
            yield _("%(name)s is shorter than %(limit)s characters") % {"name": name, "limit": MIN_PASSPHRASE_BYTES}
