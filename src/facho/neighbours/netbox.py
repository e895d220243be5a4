"""Asks NetBox over its REST API for devices, and writes custom fields of theirs.

Of its answers nothing is trusted: neither their size nor their shape, and no address in them is ever asked.
"""

import asyncio
import json
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from ipaddress import ip_interface
from typing import Any
from urllib.parse import urlencode

from django.conf import settings
from django.utils.translation import gettext as _

from facho.alerts.http_request import AnswerRefused, fetch_json

DEVICES_PATH = "/api/dcim/devices/"
# A command waits, and no page: NetBox needs seconds for a long list.
ASK_SECONDS = 30.0
# Some kilobytes each, without their contexts: well below the size of an answer.
DEVICES_PER_PAGE = 50
# No provider has as many OLTs: it is another list, or one that does not end.
MOST_DEVICES = 10_000
# Each is saved on its own there, with its entry in the change log.
DEVICES_PER_CHANGE = 25
MAX_LETTERS = 200
MAX_ID = 2**63 - 1
# Tokens of NetBox 4.5 and later begin so, and are sent in another way.
NEW_TOKEN = "nbt_"  # noqa: S105 - how all of them begin


class NetBoxAway(Exception):
    """NetBox did not answer, or not as it should; says so in a sentence for the operator."""


@dataclass(frozen=True, slots=True)
class NetBoxDevice:
    """A device as NetBox describes it; texts are its own words, and empty when it has none."""

    id: int
    name: str
    status: str
    role: str
    site: str
    tags: frozenset[str]
    # The primary one, without the length of its network.
    address: str
    # Those of the settings that it has.
    custom_fields: Mapping[str, Any] = field(hash=False)

    @property
    def is_asked_for(self) -> bool:
        """Whether it is what the settings name: NetBox passes over a filter that it does not know."""
        return (
            self.role in settings.FACHO_NETBOX_ROLES
            and (not settings.FACHO_NETBOX_SITES or self.site in settings.FACHO_NETBOX_SITES)
            and (not settings.FACHO_NETBOX_TAG or settings.FACHO_NETBOX_TAG in self.tags)
        )


def fetch_devices() -> list[NetBoxDevice]:
    """Return all devices that the settings name, with any status."""
    found: dict[int, NetBoxDevice] = {}
    offset = 0
    while offset < MOST_DEVICES:
        answer = _ask("GET", {**_filters(), "limit": str(DEVICES_PER_PAGE), "offset": str(offset)})
        results = answer.get("results") if isinstance(answer, dict) else None
        if not isinstance(results, list):
            raise _wrong_shape()
        found |= {device.id: device for device in map(read_device, results)}
        # `next` is an address that may lead anywhere: that there is one is all that counts.
        if not answer.get("next"):
            return list(found.values())
        if not results:
            raise _wrong_shape()
        # Its administrator may have set a shorter page.
        offset += len(results)
    raise NetBoxAway(_("NetBox has more than %s such devices: name roles or sites that only OLTs have.") % MOST_DEVICES)


def fetch_count() -> int:
    """Return how many there are."""
    answer = _ask("GET", {**_filters(), "limit": "1"})
    count = answer.get("count") if isinstance(answer, dict) else None
    if not isinstance(count, int):
        raise _wrong_shape()
    return count


def save_fields(changes: Sequence[tuple[int, Mapping[str, Any]]]) -> None:
    """Write custom fields of devices, each by its id: some devices in one request, all of these or none."""
    for at in range(0, len(changes), DEVICES_PER_CHANGE):
        batch = changes[at : at + DEVICES_PER_CHANGE]
        body = [{"id": device_id, "custom_fields": dict(fields)} for device_id, fields in batch]
        _ask("PATCH", {"exclude": "config_context"}, json.dumps(body).encode())


def _filters() -> dict[str, Any]:
    named = {"role": settings.FACHO_NETBOX_ROLES, "site": settings.FACHO_NETBOX_SITES, "tag": settings.FACHO_NETBOX_TAG}
    return {"exclude": "config_context", "ordering": "id"} | {name: value for name, value in named.items() if value}


def _ask(method: str, query: Mapping[str, Any], body: bytes = b"") -> Any:
    """Ask the address of the settings, and no other: a redirect is not followed, nor is an address in an answer."""
    url = f"{settings.FACHO_NETBOX_URL.rstrip('/')}{DEVICES_PATH}?{urlencode(query, doseq=True)}"
    headers = {"Authorization": _authorization(), "Accept": "application/json", "Content-Type": "application/json"}
    asking = fetch_json(method, url, headers=headers, body=body, reach=None, seconds=ASK_SECONDS)
    try:
        return asyncio.run(asking)
    except AnswerRefused as error:
        raise NetBoxAway(refusal_words(error.status)) from error
    except TimeoutError as error:
        raise NetBoxAway(_("NetBox did not answer within %s seconds.") % int(ASK_SECONDS)) from error
    except ssl.SSLCertVerificationError as error:
        reason = _("This machine does not trust the certificate of NetBox: %s.")
        raise NetBoxAway(reason % error.verify_message) from error
    except (OSError, EOFError) as error:
        reason = getattr(error, "strerror", "") or type(error).__name__
        raise NetBoxAway(_("NetBox cannot be reached: %s.") % reason) from error
    except (ValueError, RecursionError, asyncio.LimitOverrunError) as error:
        raise _wrong_shape() from error


def _authorization() -> str:
    path = settings.FACHO_NETBOX_TOKEN_FILE
    try:
        token = path.read_text().strip() if path else ""
    except (OSError, UnicodeDecodeError) as error:
        raise NetBoxAway(_("The file %(path)s cannot be read.") % {"path": path}) from error
    # What goes into a header may not end it.
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        raise NetBoxAway(_("FACHO_NETBOX_TOKEN_FILE must name a file that contains only the token."))
    return f"{'Bearer' if token.startswith(NEW_TOKEN) else 'Token'} {token}"


def refusal_words(status: int) -> str:
    """Explain a status in terms of the settings."""
    if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
        return _("NetBox refuses the token (%s): check its permissions, its expiry and its allowed addresses.") % status
    if status == HTTPStatus.BAD_REQUEST:
        return (
            _(
                "NetBox rejects the request (%s): check that it has the roles, sites, tag and custom "
                "fields of the settings."
            )
            % status
        )
    if HTTPStatus.MULTIPLE_CHOICES <= status < HTTPStatus.BAD_REQUEST:
        return _("NetBox redirects the request (%s): set FACHO_NETBOX_URL to its own address.") % status
    return _("NetBox answers with an error (%s).") % status


def _wrong_shape() -> NetBoxAway:
    return NetBoxAway(_("This is not NetBox, or its answer is too long: check FACHO_NETBOX_URL."))


def read_device(row: Any) -> NetBoxDevice:
    """Read a device of an answer; without an id it is none, and all else may be missing."""
    if not isinstance(row, dict) or type(row.get("id")) is not int or not 0 < row["id"] <= MAX_ID:
        raise _wrong_shape()
    given, tags = row.get("custom_fields"), row.get("tags")
    fields = {field for _value, field in settings.FACHO_NETBOX_FIELDS}
    return NetBoxDevice(
        id=row["id"],
        name=_text(row.get("name")),
        status=_part(row, "status", "value"),
        # Until 3.5 it had another name.
        role=_part(row, "role", "slug") or _part(row, "device_role", "slug"),
        site=_part(row, "site", "slug"),
        tags=frozenset(_part({"tag": tag}, "tag", "slug") for tag in tags) if isinstance(tags, list) else frozenset(),
        # The first is the one that NetBox prefers: which family that is, is a setting there.
        address=next(filter(None, (_address(row, name) for name in ("primary_ip", "primary_ip4", "primary_ip6"))), ""),
        custom_fields={name: given[name] for name in fields & given.keys()} if isinstance(given, dict) else {},
    )


def _address(row: Mapping[str, Any], name: str) -> str:
    try:
        return str(ip_interface(_part(row, name, "address")).ip)
    except ValueError:
        return ""


def _part(row: Mapping[str, Any], name: str, part: str) -> str:
    value = row.get(name)
    return _text(value.get(part)) if isinstance(value, dict) else ""


def _text(value: Any) -> str:
    return value[:MAX_LETTERS] if isinstance(value, str) else ""
