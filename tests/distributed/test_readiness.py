"""The distributed web says whether somebody leads and whether what is polled can be stored."""

import json
import re
import socket
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest
from django.conf import settings as django_settings
from django.db import connection
from psycopg import sql

from facho.executions.models import ProductProcess
from servers.cluster import PATIENCE_SECONDS, Cluster, wait_until

pytestmark = [pytest.mark.slow, pytest.mark.postgresql]


def readiness(cluster: Cluster) -> str:
    """Return `ready`, or the code of what hinders it; nothing before the web answers."""
    url = re.search(r"url: (\S+)", cluster.log("web"))
    if url is None:
        return ""
    try:
        with urllib.request.urlopen(f"{url[1]}/readyz", timeout=60) as answer:  # noqa: S310 our own address
            return str(json.load(answer)["status"])
    except urllib.error.HTTPError as error:
        return str(json.load(error)["code"])


@contextmanager
def read_only_database() -> Iterator[None]:
    """Let every session of the test's database be one that may not write."""
    entry = django_settings.DATABASES["default"]
    name = sql.Identifier(connection.settings_dict["NAME"])
    address = {"host": entry["HOST"], "port": entry["PORT"], "user": entry["USER"], "password": entry["PASSWORD"]}
    with psycopg.connect(dbname="postgres", autocommit=True, **address) as admin:

        def end_sessions() -> None:
            admin.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [entry["NAME"]])

        admin.execute(sql.SQL("ALTER DATABASE {} SET default_transaction_read_only = on").format(name))
        end_sessions()
        try:
            yield
        finally:
            admin.execute(sql.SQL("ALTER DATABASE {} RESET default_transaction_read_only").format(name))
            end_sessions()
            connection.close()


def test_the_web_is_ready_while_somebody_leads_and_the_database_takes_writes(cluster: Cluster) -> None:
    cluster.start("web", "-m", "facho.core.cli.main", "web", "--bind", "127.0.0.1:0")
    wait_until(lambda: readiness(cluster) == "no_leader", "no leader")
    cluster.start_scheduler()
    wait_until(lambda: readiness(cluster) == "ready", "ready")

    with read_only_database():
        wait_until(lambda: readiness(cluster) == "read_only", "not ready")

    wait_until(lambda: readiness(cluster) == "ready", "ready again")
    for name in ("web", "scheduler"):
        assert "Traceback" not in cluster.log(name)
        assert cluster.log(name).count("storage.failed why=read_only") <= 2


@pytest.fixture
def service_manager() -> Iterator[socket.socket]:
    """What systemd is to units of the type notify."""
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as heard:
        heard.bind(f"{folder}/notify")
        heard.settimeout(PATIENCE_SECONDS)
        yield heard


def test_who_is_stopped_is_forgotten_at_once_so_that_an_upgrade_need_not_wait(
    cluster: Cluster, service_manager: socket.socket
) -> None:
    """`facho migrate` refuses while it hears of another version."""
    cluster.environ |= {"FACHO_TRAPS_BIND": "127.0.0.1:0", "NOTIFY_SOCKET": str(service_manager.getsockname())}
    cluster.start("web", "-m", "facho.core.cli.main", "web", "--bind", "127.0.0.1:0")
    cluster.start_scheduler()
    cluster.start_worker()
    cluster.start("traps", "-m", "facho.core.cli.main", "traps")
    cluster.start_beat()
    assert [service_manager.recv(64) for _ in cluster.processes] == [b"READY=1"] * 5
    wait_until(lambda: heard_of() == sorted(cluster.processes), "everybody heard of")

    statuses = {name: cluster.stop(name) for name in sorted(cluster.processes)}

    assert (statuses, heard_of()) == (dict.fromkeys(sorted(statuses), 0), [])
    assert "Traceback" not in cluster.log("beat") + cluster.log("traps")


def heard_of() -> list[str]:
    return sorted(owner.partition("/")[0] for owner in ProductProcess.objects.values_list("owner", flat=True))
