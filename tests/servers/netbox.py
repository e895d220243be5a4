"""A server on a free loopback port that answers as NetBox 4 does, with what a test spoils.

Its shapes are judged by what NetBox publishes of each version: tests/neighbours/test_netbox_schema.py.
"""

import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

TOKEN = "0123456789abcdef0123456789abcdef01234567"
DEVICES = "/api/dcim/devices/"
# What NetBox accepts for a custom field of each type; none of them is changed into another.
ACCEPTED = {"text": str, "url": str, "integer": int, "boolean": bool, "datetime": str}

# Of each a device says how many it has.
PARTS = (
    *("console_port", "console_server_port", "power_port", "power_outlet", "interface", "front_port", "rear_port"),
    *("device_bay", "module_bay", "inventory_item", "cooling_intake", "cooling_outflow"),
)


@dataclass
class NetBox:
    """Its devices and custom fields, what it was asked, and how it fails."""

    token: str = TOKEN
    devices: dict[int, dict[str, Any]] = field(default_factory=dict)
    roles: set[str] = field(default_factory=lambda: {"olt", "router"})
    custom_fields: dict[str, str] = field(default_factory=dict)
    most_per_page: int = 1000
    # 500, slow, huge, deep, html, scalar, foreign_next, endless, no_filters, forbidden
    fault: str = ""
    # Where a redirect or a next page leads.
    elsewhere: str = ""
    asked: list[tuple[str, str]] = field(default_factory=list)
    changed: list[list[dict[str, Any]]] = field(default_factory=list)
    port: int = 0
    over: threading.Event = field(default_factory=threading.Event)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def add(self, device_id: int, name: str | None, address: str | None = None, **fields: Any) -> dict[str, Any]:
        """Add a device in the shape of NetBox 4.3 to 4.7, with an active status and the role `olt`."""
        ip = address and {
            "id": device_id + 5000,
            "url": f"{self.url}/api/ipam/ip-addresses/{device_id + 5000}/",
            "display": f"{address}/24",
            "family": {"value": 6 if ":" in address else 4, "label": "IPv6" if ":" in address else "IPv4"},
            "address": f"{address}/{64 if ':' in address else 24}",
            "description": "",
            "nat_inside": None,
            "nat_outside": [],
        }
        device: dict[str, Any] = {
            "id": device_id,
            "url": f"{self.url}{DEVICES}{device_id}/",
            "display_url": f"{self.url}/dcim/devices/{device_id}/",
            "display": name or f"Unnamed ({device_id})",
            "name": name,
            "device_type": {
                "id": 11,
                "url": f"{self.url}/api/dcim/device-types/11/",
                "display": "MA5800-X7",
                "manufacturer": {
                    "id": 3,
                    "url": f"{self.url}/api/dcim/manufacturers/3/",
                    "display": "Huawei",
                    "name": "Huawei",
                    "slug": "huawei",
                },
                "model": "MA5800-X7",
                "slug": "ma5800-x7",
                "description": "",
                "device_count": 4,
            },
            "role": named(6, "olt"),
            "tenant": None,
            "platform": None,
            "serial": "",
            "asset_tag": None,
            "site": named(21, "centro"),
            "location": None,
            "rack": None,
            "position": None,
            "face": {"value": "front", "label": "Front"},
            "parent_device": None,
            "status": {"value": "active", "label": "Active"},
            "airflow": {"value": "passive", "label": "Passive"},
            "primary_ip": ip,
            "primary_ip4": ip if ip and ":" not in str(address) else None,
            "primary_ip6": ip if ip and ":" in str(address) else None,
            "oob_ip": None,
            "cluster": None,
            "virtual_chassis": None,
            "description": "",
            "comments": "",
            "config_context": {},
            "local_context_data": None,
            "tags": [],
            "custom_fields": {},
            "created": "2024-04-02T00:00:00Z",
            "last_updated": "2024-04-02T17:17:28.425000Z",
            **{f"{part}_count": 0 for part in PARTS},
            **fields,
        }
        self.devices[device_id] = device
        return device

    def set_status(self, device_id: int, value: str) -> None:
        self.devices[device_id]["status"] = {"value": value, "label": value.capitalize()}

    def move(self, device_id: int, address: str) -> None:
        moved = self.add(device_id, self.devices[device_id]["name"], address)
        self.devices[device_id] = moved


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing: who asked may leave in the middle."""


def named(number: int, slug: str) -> dict[str, Any]:
    """Write a related object as NetBox does: a role, a site or a tag."""
    of_object = {"id": number, "url": f"/{number}/", "display_url": f"/{number}/", "display": slug.title()}
    return of_object | {"name": slug.title(), "slug": slug, "_depth": 0, "device_count": 4, "virtualmachine_count": 0}


class _Handler(BaseHTTPRequestHandler):
    netbox: NetBox

    def do_GET(self) -> None:
        self._answer_as("GET", lambda query: self._list(query))

    def do_PATCH(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self._answer_as("PATCH", lambda _query: self._change(body))

    def _answer_as(self, method: str, act: Any) -> None:
        netbox, parts = self.netbox, urlsplit(self.path)
        netbox.asked.append((method, self.path))
        if netbox.fault == "slow":
            netbox.over.wait()
        if netbox.fault == "redirect":
            self._answer(302, {}, location=f"{netbox.elsewhere}{self.path}")
        elif netbox.fault in ("500", "html", "huge", "deep", "scalar"):
            self._answer_raw(500 if netbox.fault == "500" else 200, self._spoiled())
        elif not self._may_enter():
            self._answer(403, {"detail": "Invalid token"})
        elif parts.path != DEVICES:
            self._answer(404, {"detail": "Not found."})
        else:
            self._answer(*act(parse_qs(parts.query)))

    def _may_enter(self) -> bool:
        kind = "Bearer" if self.netbox.token.startswith("nbt_") else "Token"
        return self.netbox.fault != "forbidden" and self.headers["Authorization"] == f"{kind} {self.netbox.token}"

    def _spoiled(self) -> bytes:
        return {
            "500": b'{"error": "OperationalError", "exception": "OperationalError"}',
            "html": b"<!doctype html><title>Login</title>",
            "huge": b'{"results": ["' + b"x" * 3_000_000 + b'"]}',
            "deep": b"[" * 200_000,
            "scalar": b'{"count": null, "next": null, "results": 7}',
        }[self.netbox.fault]

    def _list(self, query: dict[str, list[str]]) -> tuple[int, Any]:
        netbox = self.netbox
        unknown = [slug for slug in query.get("role", []) if slug not in netbox.roles]
        if unknown:
            return 400, {"role": [f"Select a valid choice. {unknown[0]} is not one of the available choices."]}
        found = [row for _id, row in sorted(netbox.devices.items()) if netbox.fault == "no_filters" or fits(row, query)]
        limit = min(int(query["limit"][0]), netbox.most_per_page)
        offset = int(query.get("offset", ["0"])[0])
        is_more = offset + limit < len(found) or netbox.fault == "endless"
        base = netbox.elsewhere if netbox.fault == "foreign_next" else netbox.url
        after = urlencode({**query, "limit": [limit], "offset": [offset + limit]}, doseq=True)
        page = found[:limit] if netbox.fault == "endless" else found[offset : offset + limit]
        excluded = {"config_context"} if query.get("exclude") == ["config_context"] else set()
        shown = [{**row, "custom_fields": self._fields_of(row)} for row in page]
        shown = [{name: value for name, value in row.items() if name not in excluded} for row in shown]
        next_ = f"{base}{DEVICES}?{after}" if is_more else None
        return 200, {"count": len(found), "next": next_, "previous": None, "results": shown}

    def _fields_of(self, row: dict[str, Any]) -> dict[str, Any]:
        """Write all custom fields of devices: those without a value are null, and times have a Z."""
        values = {name: row["custom_fields"].get(name) for name in self.netbox.custom_fields}
        for name, kind in self.netbox.custom_fields.items():
            if kind == "datetime" and values[name]:
                values[name] = values[name].replace("+00:00", "Z")
        return values

    def _change(self, rows: list[dict[str, Any]]) -> tuple[int, Any]:
        """Change all of them or none, as NetBox does with a list."""
        for row in rows:
            for name, value in row["custom_fields"].items():
                kind = self.netbox.custom_fields.get(name)
                if kind is None or not (value is None or type(value) is ACCEPTED[kind]):
                    return 400, {"custom_fields": [f"Invalid value for custom field '{name}'"]}
                if kind == "datetime" and value:
                    datetime.fromisoformat(value)
        self.netbox.changed.append(rows)
        for row in rows:
            self.netbox.devices[row["id"]]["custom_fields"].update(row["custom_fields"])
        return 200, [self.netbox.devices[row["id"]] for row in rows]

    def _answer(self, status: int, content: Any, *, location: str = "") -> None:
        self._answer_raw(status, json.dumps(content).encode(), location=location)

    def _answer_raw(self, status: int, body: bytes, *, location: str = "") -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("API-Version", "4.1")
        if location:
            self.send_header("Location", location)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        # Who asks may leave in the middle, which is what some tests are about.
        with suppress(ConnectionError):
            self.wfile.write(body)

    def log_message(self, *_words: object) -> None:
        """Stay quiet."""


def fits(row: dict[str, Any], query: dict[str, list[str]]) -> bool:
    """Filter as NetBox does: any of the roles and sites, all of the tags."""
    slugs = {tag["slug"] for tag in row["tags"]}
    return (
        ((row.get("role") or row.get("device_role"))["slug"] in query["role"])
        and ("site" not in query or row["site"]["slug"] in query["site"])
        and set(query.get("tag", [])) <= slugs
    )


@contextmanager
def netbox_server(tls: ssl.SSLContext | None = None) -> Iterator[NetBox]:
    """Serve while the block runs."""
    netbox = NetBox()
    server = _Server(("127.0.0.1", 0), type("Handler", (_Handler,), {"netbox": netbox}))
    if tls:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    netbox.port = server.server_port
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield netbox
    finally:
        netbox.over.set()
        server.shutdown()
        server.server_close()
        thread.join()
