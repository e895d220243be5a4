"""A stored secret reaches no address but the one it was given for: a random walk over every way to change a connection.

Every credential is a canary that is given once, for one host and port. Real sockets listen at every place; after each
step both OLTs are asked there, and whatever they are asked with must have been given for that place.
"""

import asyncio
import random
import re
import socket
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import pytest
from cli_runner import Command
from django.db import connection, transaction
from django.test import Client
from rest_framework.test import APIClient

from api.rows import make_user
from facho.accounts.roles import Role
from facho.hosts.models import Olt
from facho.hosts.store import load_target
from facho.infrastructure.secrets import UndecryptableSecret
from facho.polling.domain.collection import CollectRequest
from facho.polling.domain.execution_state import QueryType
from facho.polling.snmp.errors import SnmpError
from facho.polling.snmp.network import Network
from facho.polling.snmp.oid import SYS_UP_TIME
from facho.polling.snmp.target import Community, Patience
from facho.snmp_jobs.models import Workflow

pytestmark = pytest.mark.django_db

STEPS = 50
NAMES = ("Norte", "Sur")
HOSTS = {"127.0.0.1": "127.0.0.1", "localhost": "127.0.0.1", "127.0.0.2": "127.0.0.2"}
SECRETS = ("community", "v3_auth_key", "v3_priv_key")
SILENT = Patience(timeout_s=0.01, tries=1)

Inputs = dict[str, str]


class Allowed:
    """A permit that allows every packet: no engine runs here."""

    def check(self) -> None:
        """Allow."""


class Listeners:
    """A socket at each place that an OLT may be moved to, and what it heard."""

    def __init__(self) -> None:
        first = [self._bind("127.0.0.1", 0) for _ in range(3)]
        self.ports = [each.getsockname()[1] for each in first]
        self.sockets = first + [self._bind("127.0.0.2", port) for port in self.ports]

    def _bind(self, address: str, port: int) -> socket.socket:
        bound = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        bound.bind((address, port))
        bound.setblocking(False)
        return bound

    def heard(self) -> Iterator[tuple[str, bytes]]:
        """Give each datagram that came, with the place where it came to."""
        for each in self.sockets:
            address, port = each.getsockname()
            with suppress(BlockingIOError):
                while True:
                    yield f"{address}:{port}", each.recv(65_535)

    def close(self) -> None:
        for each in self.sockets:
            each.close()


@pytest.fixture
def listeners() -> Iterator[Listeners]:
    made = Listeners()
    yield made
    made.close()


class Walk:
    """The product, who may change it, and which canary was given for which place."""

    def __init__(self, seed: int, listeners: Listeners, facho: Command, folder: Path) -> None:
        self.random, self.listeners, self.facho, self.folder = random.Random(seed), listeners, facho, folder  # noqa: S311 a walk that can be repeated
        self.admin, self.api = Client(headers={"accept-language": "en"}), APIClient()
        user = make_user(Role.ADMIN)
        self.admin.force_login(user)
        self.api.force_login(user)
        self.homes: dict[str, tuple[str, str]] = {}
        self.steps: list[str] = []
        self.done: Counter[str] = Counter()
        self.sightings = 0
        self.snapshots: list[dict[str, str]] = []
        self.stale: list[CollectRequest] = []
        # Whoever edits rows reads a user's name there: only what is encrypted has to hold then.
        self.watched: tuple[str, ...] = (*SECRETS, "v3_user")

    def canary(self, name: str, host: str, port: str) -> str:
        """Make a credential for one place."""
        text = f"canary-{len(self.homes):04}-{'x' if name in self.watched else 'unwatched'}"
        self.homes[text] = (host, f"{HOSTS[host]}:{port}")
        return text

    def wish(self, name: str) -> Inputs:
        """Choose a connection, every third time at the same place; each credential is given more often than not."""
        choose, olt = self.random.choice, Olt.objects.defer(*SECRETS).get(name=name)
        places = [(host, str(port)) for host in HOSTS for port in self.listeners.ports]
        host, port = (olt.host, str(olt.port)) if self.random.random() < 0.35 else choose(places)
        wish = {"host": host, "port": port, "version": choose("123")}
        wish["version"] = wish["version"].replace("2", "2c")
        given = [name for name in (*SECRETS, "v3_user") if self.random.random() < 0.6]
        if wish["version"] == "3":
            wish |= {"v3_auth_protocol": "SHA", "v3_priv_protocol": "AES"}
        return wish | {name: self.canary(name, wish["host"], wish["port"]) for name in given}

    def step(self, ways: Sequence[Callable[["Walk", str, Inputs], bool]]) -> None:
        """Change one OLT in one way, then ask both, also as whoever claimed them before would."""
        way, name = self.random.choice(ways), self.random.choice(NAMES)
        wish = self.wish(name)
        self.stale = [request_for(olt) for olt in Olt.objects.defer(*SECRETS)]
        was_done = way(self, name, wish)
        self.done[way.__name__] += was_done
        self.steps.append(f"{way.__name__} {name} {wish} {'done' if was_done else 'refused'}")
        for request in [*self.stale, *(request_for(olt) for olt in Olt.objects.defer(*SECRETS))]:
            self.ask(request)
        for place, datagram in self.listeners.heard():
            for text in re.findall(rb"canary-\d{4}-x", datagram):
                self.sight(text.decode(), place)

    def ask(self, request: CollectRequest) -> None:
        """Send what the product would send; of SNMPv3 look at what it would be sealed with."""
        try:
            target, limits = load_target(request, definition_in_flight=1)
        except (SnmpError, UndecryptableSecret, Olt.DoesNotExist):
            return
        if isinstance(target.credential, Community):
            asyncio.run(_send(target, limits))
            return
        used = (target.credential.user, target.credential.auth_key.decode(), target.credential.priv_key.decode())
        for text in filter(None, used):
            self.sight(text, f"{target.address}:{target.port}")

    def sight(self, text: str, place: str) -> None:
        """Refuse a canary elsewhere than at its place."""
        self.sightings += 1
        if text.endswith("unwatched"):
            return
        assert self.homes[text][1] == place, (text, self.homes[text], place, *self.steps[-8:])

    def check_rows(self) -> None:
        """Refuse a stored credential that was given for another host or port, used or not."""
        for olt in Olt.objects.all():
            for name in SECRETS:
                text = getattr(olt, name).reveal()
                home = (olt.host, f"{olt.address}:{olt.port}")
                assert not text or self.homes[text] == home, (name, self.homes[text], home, *self.steps[-8:])


async def _send(target: object, limits: object) -> None:
    async with Network() as network:
        session = network.open(target, Allowed(), limits)  # type: ignore[arg-type]
        with suppress(SnmpError):
            await session.get([SYS_UP_TIME], patience=SILENT)
        await session.close()


def request_for(olt: Olt) -> CollectRequest:
    return CollectRequest(olt.pk, olt.address, olt.port, olt.vendor, QueryType.GET, ())


def by_admin_form(walk: Walk, name: str, wish: Inputs) -> bool:
    olt = Olt.objects.get(name=name)
    inputs = {
        "name": name,
        "host": wish["host"],
        "port": wish["port"],
        "vendor": "",
        "enabled": "on",
        "snmp_version": wish["version"],
        "v3_user": wish.get("v3_user", ""),
        **{key: wish[key] for key in ("v3_auth_protocol", "v3_priv_protocol") if key in wish},
        **{f"new_{key}": wish[key] for key in SECRETS if key in wish},
    }
    return walk.admin.post(f"/admin/hosts/olt/{olt.pk}/change/", inputs).status_code == 302


def by_first_run(walk: Walk, name: str, wish: Inputs) -> bool:
    olt = Olt.objects.get(name=name)
    return walk.admin.post(f"/olts/add/{olt.pk}/correct/", wish).status_code == 302


def by_api(walk: Walk, name: str, wish: Inputs) -> bool:
    olt = Olt.objects.get(name=name)
    return walk.api.put(f"/api/v1/olts/{olt.pk}/connection/", wish, format="json").status_code == 200


def by_api_anew(walk: Walk, name: str, wish: Inputs) -> bool:
    """Delete it and add it again, which is refused often: nothing is stored that could be left out."""
    with suppress(_Refused), transaction.atomic():
        walk.api.delete(f"/api/v1/olts/{Olt.objects.get(name=name).pk}/")
        body = {"name": name, "with_jobs": False, **wish}
        if walk.api.post("/api/v1/olts/", body, format="json").status_code != 201:
            raise _Refused
        Workflow.objects.get_or_create(olt=Olt.objects.get(name=name))
        return True
    return False


def by_cli_add(walk: Walk, name: str, wish: Inputs) -> bool:
    """Delete it and add it again at the command line."""
    if wish["version"] == "3":
        keys = [wish.get(key, "") for key in ("v3_auth_key", "v3_priv_key")]
        options = ["--v3-user", wish.get("v3_user", ""), "--auth-protocol", "SHA", "--priv-protocol", "AES"]
        options.append("--keys-stdin")
        stdin = "\n".join(keys).encode()
    else:
        options, stdin = ["--community-stdin"], wish.get("community", "").encode()
    with suppress(_Refused), transaction.atomic():
        Olt.objects.filter(name=name).delete()
        place = ["--port", wish["port"], "--version", wish["version"]]
        if walk.facho("olt", "add", name, wish["host"], *place, *options, stdin=stdin).status != 0:
            raise _Refused
        return True
    return False


def by_cli_import(walk: Walk, name: str, wish: Inputs) -> bool:
    file = walk.folder / "olts.csv"
    file.write_text(_csv(name, wish))
    return walk.facho("olt", "import", str(file)).status == 0


def by_admin_import(walk: Walk, name: str, wish: Inputs) -> bool:
    page = walk.admin.post("/admin/hosts/olt/import/", {"text": _csv(name, wish)}).content.decode()
    found = re.search(r'name="confirmed" value="(\w+)"', page)
    if found is None:
        return False
    return walk.admin.post("/admin/hosts/olt/import/", {"confirmed": found[1]}).status_code == 302


def by_hand(walk: Walk, name: str, wish: Inputs) -> bool:
    """Move the row by SQL, as somebody with the database and without the keys would."""
    with suppress(Exception), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(
            "UPDATE hosts_olt SET host = %s, address = %s, port = %s, snmp_version = %s WHERE name = %s",
            [wish["host"], HOSTS[wish["host"]], int(wish["port"]), wish["version"], name],
        )
        return True
    return False


def by_hand_the_name_only(walk: Walk, name: str, wish: Inputs) -> bool:
    """Rename the host, and leave it to the next save to ask for its address."""
    with connection.cursor() as cursor:
        cursor.execute("UPDATE hosts_olt SET host = %s WHERE name = %s", [wish["host"], name])
    return True


def by_swapping_ciphertext(walk: Walk, name: str, wish: Inputs) -> bool:
    """Copy a stored secret of one row to the other, also into another column."""
    other = NAMES[1 - NAMES.index(name)]
    source, target = walk.random.choice(SECRETS), walk.random.choice(SECRETS)
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {source} FROM hosts_olt WHERE name = %s", [other])  # noqa: S608 our own names
        cursor.execute(f"UPDATE hosts_olt SET {target} = %s WHERE name = %s", [*cursor.fetchone(), name])  # noqa: S608
    return True


def by_old_backup(walk: Walk, name: str, wish: Inputs) -> bool:
    """Put the secrets of an earlier moment back, as a restored table does, with the connection of today."""
    columns = ", ".join(SECRETS)
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {columns} FROM hosts_olt WHERE name = %s", [name])  # noqa: S608 our own names
        walk.snapshots.append(dict(zip(SECRETS, cursor.fetchone(), strict=True)))
        old = walk.random.choice(walk.snapshots)
        cursor.execute(
            f"UPDATE hosts_olt SET {', '.join(f'{key} = %s' for key in old)} WHERE name = %s",  # noqa: S608
            [*old.values(), name],
        )
    return True


class _Refused(Exception):
    """The product said no: put back what was there."""


def _csv(name: str, wish: Inputs) -> str:
    columns = ["name", "host", "port", "vendor", "version", "community"]
    columns += ["v3_user", "v3_auth_protocol", "v3_auth_key", "v3_priv_protocol", "v3_priv_key"]
    row = {"name": name, **wish}
    return f"{','.join(columns)}\n{','.join(row.get(column, '') for column in columns)}\n"


OFFERED = [by_admin_form, by_first_run, by_api, by_api_anew, by_cli_add, by_cli_import, by_admin_import]
FORCED = [by_hand, by_hand_the_name_only, by_swapping_ciphertext, by_old_backup]


def begin(seed: int, listeners: Listeners, facho: Command, folder: Path) -> Walk:
    walk = Walk(seed, listeners, facho, folder)
    for name, port in zip(NAMES, listeners.ports, strict=False):
        secret = walk.canary("community", "127.0.0.1", str(port))
        place = {"host": "127.0.0.1", "address": "127.0.0.1", "port": port}
        Workflow.objects.create(olt=Olt.objects.create(name=name, community=secret, **place))
    return walk


@pytest.mark.parametrize("seed", range(3))
def test_no_way_that_is_offered_takes_a_secret_to_another_place(
    seed: int, listeners: Listeners, facho: Command, tmp_path: Path
) -> None:
    walk = begin(seed, listeners, facho, tmp_path)

    for _ in range(STEPS):
        walk.step(OFFERED)
        walk.check_rows()

    assert walk.sightings > STEPS / 4
    assert len(+walk.done) == len(OFFERED)


@pytest.mark.parametrize("seed", range(3))
def test_no_edited_row_takes_a_secret_to_another_place(
    seed: int, listeners: Listeners, facho: Command, tmp_path: Path
) -> None:
    """Not even together with saves that mean well."""
    walk = begin(seed, listeners, facho, tmp_path)
    walk.watched = SECRETS

    for _ in range(STEPS):
        walk.step([*OFFERED, *FORCED])

    assert walk.sightings > STEPS / 8
    assert len(+walk.done) > len(FORCED)
