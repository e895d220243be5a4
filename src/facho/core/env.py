"""The only module that reads the environment. Every setting is declared here once, with its default.

A value that cannot be read is kept as a problem, so that a system check can name it together with the others.
"""

import math
import os
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from facho.polling.domain.planning import is_group_name

PREFIX = "FACHO_"
MAX_PORT = 65_535
# Where Zabbix servers and proxies listen.
ZABBIX_PORT = 10_051
# As in accounts.roles, which needs the settings that are made from here.
ROLES = ("viewer", "operator", "admin")
# What Facho knows of an OLT and may write into custom fields of NetBox.
NETBOX_VALUES = ("reachable", "model", "system", "onus_online", "onus_total", "last_answer", "link")
# What of an ONU the address of its page on an ACS may hold.
ACS_PLACES = ("serial", "serial_hex", "mac")
# Each opens four connections to the database; who has more cores asks for more.
USUAL_ENGINES = 8
# A scrape of per-ONU metrics holds a hundred bytes of each while it is written.
MOST_ONUS = 1_000_000
_BELOW_A_DAY = math.nextafter(86_400, 0)


class Mode(StrEnum):
    """How the product runs; chosen, never guessed."""

    EMBEDDED = "embedded"
    DISTRIBUTED = "distributed"


@dataclass(frozen=True, slots=True)
class Setting:
    """One environment variable: how to read it, and what holds when it is absent."""

    name: str
    read: Callable[[str], Any]
    default: str
    expects: str


@dataclass(frozen=True, slots=True)
class Problem:
    """A variable whose value could not be used; the value itself is not kept, it may be a secret."""

    name: str
    expects: str


def _(text: str) -> str:
    """Mark a text for translation; gettext itself would need the settings that are made from here."""
    return text


def _optional_path(value: str) -> Path | None:
    return _path(value) if value else None


def _path(value: str) -> Path:
    try:
        return Path(value).expanduser()
    except RuntimeError as error:  # ~name of a user who does not exist
        raise ValueError from error


def _whole(value: str, high: float = math.inf) -> int:
    number = int(value)
    if not 1 <= number <= high:
        raise ValueError
    return number


def _optional_whole(value: str, high: float = math.inf) -> int | None:
    return _whole(value, high) if value else None


def _seconds(value: str, low: float = 0, high: float = _BELOW_A_DAY) -> float:
    number = float(value)
    if number == 0 or not low <= number <= high:
        raise ValueError
    return number


def _one_of(value: str, words: Collection[str]) -> str:
    if value not in words:
        raise ValueError
    return value


def _names(value: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in value.split(",") if name.strip())


def _poller_groups(value: str) -> dict[str, int]:
    groups = {}
    for entry in _names(value):
        name, _separator, count = entry.partition(":")
        if not is_group_name(name) or name in groups:
            raise ValueError
        groups[name] = _whole(count)
    return groups


def _time_zone(value: str) -> str:
    """Check the name here: Django would only raise while its settings load."""
    try:
        ZoneInfo(value)
    except (ZoneInfoNotFoundError, OSError) as error:
        raise ValueError from error
    return value


def _optional_address(value: str) -> str:
    return str(ip_address(value)) if value else ""


def _networks(value: str) -> tuple[IPv4Network | IPv6Network, ...]:
    return tuple(ip_network(text) for text in _names(value))


def _zabbix_servers(value: str) -> tuple[tuple[str, int], ...]:
    """Read HOST or HOST:PORT, an IPv6 address being in brackets."""
    servers = []
    for entry in _names(value):
        has_port = ":" in entry.rpartition("]")[2]
        host, port = split_bind(entry if has_port else f"{entry}:{ZABBIX_PORT}")
        if not port or any(letter.isspace() for letter in host):
            raise ValueError
        servers.append((host, port))
    return tuple(servers)


def _optional_http_url(value: str) -> str:
    parts = urlsplit(value)
    if value and (parts.scheme not in ("http", "https") or not parts.hostname or parts.username is not None):
        raise ValueError
    return value


def _optional_provider(value: str) -> str:
    """Read an issuer: by TLS, or on this very machine, where nobody is in between."""
    parts = urlsplit(_optional_http_url(value))
    is_near = parts.hostname in ("localhost", "127.0.0.1", "::1")
    if value and (parts.query or parts.fragment or (parts.scheme != "https" and not is_near)):
        raise ValueError
    return value


def _optional_directory(value: str) -> str:
    parts = urlsplit(value)
    if value and (parts.scheme not in ("ldap", "ldaps") or not parts.hostname or parts.path.strip("/") or parts.query):
        raise ValueError
    return value


def _filter(value: str, place: str) -> str:
    """Read an LDAP filter that has exactly one kind of place in it, where an escaped value is put."""
    if (
        not value.startswith("(")
        or not value.endswith(")")
        or place not in value
        or value.count("(") != value.count(")")
    ):
        raise ValueError
    return value


def _pairs(value: str, words: Collection[str] = ()) -> tuple[tuple[str, str], ...]:
    """Read WORD=GROUP;WORD=GROUP; names of LDAP groups have commas and equals signs in them."""
    pairs = []
    for entry in filter(None, (part.strip() for part in value.split(";"))):
        word, separator, group = (part.strip() for part in entry.partition("="))
        if not separator or not word or not group or (words and word not in words):
            raise ValueError
        pairs.append((word, group))
    return tuple(pairs)


def _tiles(value: str) -> str:
    """Check the address of a map's images; its origin goes into a header, so it has nothing that could end a rule."""
    parts = urlsplit(value)
    is_plain = value.isascii() and value.isprintable() and not set(value) & set(" ;,'\"\\")
    has_places = all(part in value for part in ("{z}", "{x}", "{y}"))
    if value and (_optional_http_url(value) != value or not is_plain or not has_places or "{" in parts.netloc):
        raise ValueError
    return value


def _acs_template(value: str) -> str:
    """Check the address of an ONU's page on an ACS: its places stand behind the host, and it ends no attribute."""
    parts = urlsplit(_optional_http_url(value))
    places = re.findall(r"\{(\w+)\}", value)
    is_plain = value.isascii() and value.isprintable() and not set(value) & set(" \"'<>\\")
    has_places = bool(places) and set(places) <= set(ACS_PLACES) and len(places) == value.count("{") == value.count("}")
    if value and (not is_plain or not has_places or "{" in parts.netloc):
        raise ValueError
    return value


def read_bind(value: str) -> str:
    """Read HOST:PORT; ValueError for anything else."""
    split_bind(value)
    return value


def split_bind(value: str) -> tuple[str, int]:
    """Split HOST:PORT, an IPv6 address being in brackets; port 0 is any free one; ValueError for anything else."""
    host, _separator, port = value.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    # int alone accepts signs, spaces and the digits of every script.
    if not host or not (port.isascii() and port.isdecimal()) or int(port) > MAX_PORT:
        raise ValueError
    return host, int(port)


_days = partial(_whole, high=36_500)
_period = partial(_seconds, high=31 * 86_400)
_log_level = partial(_one_of, words=("DEBUG", "INFO", "WARNING", "ERROR"))

SETTINGS = (
    Setting("FACHO_MODE", Mode, Mode.EMBEDDED, _("embedded or distributed")),
    Setting("FACHO_DATA_DIR", _path, "facho-data", _("a folder that this user may write")),
    Setting("DATABASE_URL", str, "", _("postgresql://USER:PASSWORD@HOST:PORT/NAME or sqlite:///PATH")),
    Setting("REDIS_URL", str, "", "redis://HOST:PORT/NUMBER"),
    Setting("FACHO_SECRET_KEY_FILE", _optional_path, "", _("a file with one line")),
    Setting("FACHO_ENCRYPTION_KEYS_FILE", _optional_path, "", _("a file with one Fernet key a line")),
    Setting("FACHO_BIND", read_bind, "127.0.0.1:8000", _("HOST:PORT, the port being at most 65535")),
    Setting("FACHO_ALLOWED_HOSTS", _names, "localhost,127.0.0.1,[::1]", _("host names, separated by commas")),
    Setting("FACHO_POLLERS", _whole, "10", _("a whole number from 1")),
    Setting("FACHO_ENGINES", _optional_whole, "", _("a whole number from 1")),
    Setting("FACHO_POLLER_GROUPS", _poller_groups, "", "NAME:NUMBER,NAME:NUMBER"),
    Setting("FACHO_LEASE_SECONDS", _seconds, "60", _("seconds, above 0 and below a day")),
    Setting("FACHO_PACKET_TIMEOUT_SECONDS", _seconds, "20", _("seconds, above 0 and below a day")),
    Setting("FACHO_SOURCE_ADDRESS", _optional_address, "", _("an address of this machine")),
    Setting("FACHO_YIELD_SECONDS", _seconds, "60", _("seconds, above 0 and below a day")),
    Setting("FACHO_SUSPENDED_RETURN", partial(_one_of, words=("probe", "person")), "probe", _("probe or person")),
    Setting("FACHO_QUOTA_PERCENT", partial(_whole, high=100), "80", _("a whole number from 1 to 100")),
    # At most a minute: quotas are counted, and an hour is judged, by its passes.
    Setting("FACHO_COORDINATOR_SECONDS", partial(_seconds, low=1, high=60), "5", _("seconds, from 1 to 60")),
    Setting("FACHO_COORDINATOR_LOG_DAYS", _days, "7", _("days, from 1 to 36500")),
    Setting("FACHO_HISTORY_DAYS", _days, "30", _("days, from 1 to 36500")),
    Setting("FACHO_HISTORY_HOURLY_DAYS", _days, "90", _("days, from 1 to 36500")),
    Setting("FACHO_HISTORY_DAILY_DAYS", _days, "1826", _("days, from 1 to 36500")),
    Setting("FACHO_BEAT_SCHEDULER_SECONDS", _period, "1", _("seconds, above 0 and up to 31 days")),
    Setting("FACHO_BEAT_QUOTAS_SECONDS", _period, "3600", _("seconds, above 0 and up to 31 days")),
    Setting("FACHO_BEAT_CLEANUP_SECONDS", _period, "86400", _("seconds, above 0 and up to 31 days")),
    Setting("FACHO_TRAPS_BIND", read_bind, "0.0.0.0:1162", _("HOST:PORT, the port being at most 65535")),
    Setting("FACHO_TRAP_GAP_SECONDS", partial(_seconds, low=1), "10", _("seconds, from 1 and below a day")),
    Setting("FACHO_WEBHOOK_ALLOW", _networks, "", _("networks such as 10.0.0.0/8, separated by commas")),
    Setting("FACHO_HEARTBEAT_URL", _optional_http_url, "", "https://HOST/PATH"),
    Setting("FACHO_ZABBIX_SERVER", _zabbix_servers, "", _("HOST or HOST:PORT, separated by commas")),
    Setting("FACHO_ZABBIX_HOST_PREFIX", str, "", _("a text")),
    Setting("FACHO_PUBLIC_URL", _optional_http_url, "", "https://HOST"),
    Setting("FACHO_OIDC_ISSUER", _optional_provider, "", _("https://HOST/PATH, the issuer of the provider")),
    Setting("FACHO_OIDC_CLIENT_ID", str, "", _("the client id that the provider gave")),
    Setting("FACHO_OIDC_CLIENT_SECRET_FILE", _optional_path, "", _("a file with one line")),
    Setting("FACHO_OIDC_SCOPES", _names, "openid,profile,email", _("scopes, separated by commas")),
    Setting("FACHO_OIDC_GROUPS_CLAIM", _names, "groups", _("names of claims, separated by commas")),
    Setting("FACHO_OIDC_NAME", str, "", _("the words on the button")),
    Setting("FACHO_LDAP_URL", _optional_directory, "", _("ldaps://HOST or ldap://HOST")),
    Setting("FACHO_LDAP_CA_FILE", _optional_path, "", _("a file with certificates (PEM)")),
    Setting("FACHO_LDAP_BIND_DN", str, "", _("the DN of an account that may search")),
    Setting("FACHO_LDAP_BIND_PASSWORD_FILE", _optional_path, "", _("a file with one line")),
    Setting("FACHO_LDAP_USER_BASE", str, "", _("the DN under which people are found")),
    Setting("FACHO_LDAP_USER_FILTER", partial(_filter, place="{name}"), "(uid={name})", "(…{name}…)"),
    Setting("FACHO_LDAP_GROUP_BASE", str, "", _("the DN under which groups are found")),
    Setting("FACHO_LDAP_GROUP_FILTER", partial(_filter, place="{dn}"), "(member={dn})", "(…{dn}…)"),
    Setting("FACHO_SIGN_ON_ROLES", partial(_pairs, words=ROLES), "", _("ROLE=GROUP;ROLE=GROUP")),
    Setting("FACHO_SIGN_ON_OLT_GROUPS", _pairs, "", _("OLT GROUP=GROUP;OLT GROUP=GROUP")),
    Setting("FACHO_SIGN_ON_HOURS", partial(_whole, high=168), "10", _("hours, from 1 to 168")),
    Setting("FACHO_MAP_TILES", _tiles, "", "https://HOST/{z}/{x}/{y}.png"),
    Setting("FACHO_MAP_ATTRIBUTION", str, "", _("a text")),
    Setting("FACHO_NETBOX_URL", _optional_provider, "", _("https://HOST, where NetBox is")),
    Setting("FACHO_NETBOX_TOKEN_FILE", _optional_path, "", _("a file with one line")),
    Setting("FACHO_NETBOX_ROLES", _names, "olt", _("slugs of device roles, separated by commas")),
    Setting("FACHO_NETBOX_SITES", _names, "", _("slugs of sites, separated by commas")),
    Setting("FACHO_NETBOX_TAG", str, "", _("the slug of a tag")),
    Setting("FACHO_NETBOX_CREDENTIALS_FILE", _optional_path, "", _("a CSV file with a line for each network")),
    Setting("FACHO_NETBOX_FIELDS", partial(_pairs, words=NETBOX_VALUES), "", _("VALUE=FIELD;VALUE=FIELD")),
    Setting("FACHO_ACS_URL", _acs_template, "", "https://HOST/…{serial}…"),
    Setting("FACHO_SMARTOLT_API", partial(_one_of, words=("off", "on")), "off", _("off or on")),
    Setting("FACHO_ONU_METRICS", partial(_optional_whole, high=MOST_ONUS), "", _("a whole number up to 1000000")),
    Setting("FACHO_STATUS_PAGE", partial(_one_of, words=("off", "on")), "off", _("off or on")),
    Setting("FACHO_S3_ENDPOINT", _optional_http_url, "", "https://HOST"),
    Setting("FACHO_S3_REGION", str, "us-east-1", _("the name of a region")),
    Setting("FACHO_S3_KEYS_FILE", _optional_path, "", _("a file with two words")),
    Setting("FACHO_LANGUAGE", partial(_one_of, words=("es", "en", "pt-br")), "es", _("es, en or pt-br")),
    Setting("FACHO_TIME_ZONE", _time_zone, "UTC", _("a time zone name such as America/Bogota")),
    Setting("FACHO_LOG_LEVEL", _log_level, "INFO", _("DEBUG, INFO, WARNING or ERROR")),
    Setting("FACHO_LOG_FORMAT", partial(_one_of, words=("text", "json")), "text", _("text or json")),
)


@dataclass(frozen=True, slots=True)
class Environment:
    """All settings as typed values, and what was wrong with the environment."""

    values: Mapping[str, Any]
    problems: tuple[Problem, ...]
    unknown_names: tuple[str, ...] = ()

    def __getitem__(self, name: str) -> Any:
        return self.values[name]


def read_environment(environ: Mapping[str, str]) -> Environment:
    """Read every declared setting; keep unknown FACHO_ names too, since one is usually a typing error."""
    values: dict[str, Any] = {}
    problems: list[Problem] = []
    for setting in SETTINGS:
        try:
            values[setting.name] = setting.read(environ.get(setting.name) or setting.default)
        except ValueError:
            values[setting.name] = setting.read(setting.default)
            problems.append(problem_with(setting.name))
    unknown = sorted(name for name in environ if name.startswith(PREFIX) and name not in values)
    return Environment(values, tuple(problems), tuple(unknown))


def count_cores() -> int:
    """Return how many cores this process may use, which may be fewer than the machine has."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def count_engines(environment: Environment, *, cores: int, can_share: bool) -> int:
    """Return how many engines share the OLTs: as asked for, else one a core; SQLite has one writer."""
    if not can_share or environment["FACHO_MODE"] is Mode.DISTRIBUTED:
        return 1
    wanted: int = environment["FACHO_ENGINES"] or min(cores, USUAL_ENGINES, environment["FACHO_POLLERS"])
    return wanted if wanted <= environment["FACHO_POLLERS"] else 1


def problem_with(name: str) -> Problem:
    return next(Problem(name, setting.expects) for setting in SETTINGS if setting.name == name)
