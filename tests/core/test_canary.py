"""A community string is seen nowhere but on the wire: the canary is used for real and then looked for everywhere."""

import asyncio
import logging
import traceback

import pytest
from django.apps import apps
from django.contrib.auth.models import User
from django.core import serializers
from django.db import connection, connections
from django.test import Client
from django.urls import reverse
from pytest_django import Settings

from facho.accounts.roles import Role, give_role
from facho.core.wiring import probe_olt
from facho.executions.models import Execution
from facho.hosts.csv import write_entries
from facho.hosts.inventory import export_entries
from facho.hosts.models import Olt
from facho.simulator.server import Simulation, SimulatorConfig
from facho.simulator.world import STILL
from factories import give_secrets, make_olt

pytestmark = pytest.mark.django_db(transaction=True)

CANARY = "canary-7f3a"


@pytest.fixture
def polled(caplog: pytest.LogCaptureFixture, settings: Settings) -> Olt:
    """An OLT with the canary that was asked twice: it answered once, and stayed silent once."""
    caplog.set_level(logging.DEBUG)
    settings.FACHO_PACKET_TIMEOUT_SECONDS = 0.1
    olt = asyncio.run(_poll())
    assert set(Execution.objects.values_list("status", flat=True)) == {"SUCCESS", "FAILED"}
    return olt


async def _poll() -> Olt:
    config = SimulatorConfig(vendor="huawei_smartax", onus=2, life=STILL, community=CANARY)
    async with Simulation.start(config) as simulation:
        olt = await asyncio.to_thread(_add, simulation.olts[0].port)
        await asyncio.to_thread(probe_olt, olt.id)
    # Nobody listens there any more.
    await asyncio.to_thread(probe_olt, olt.id)
    return olt


def _add(port: int) -> Olt:
    try:
        olt = make_olt(port=port, vendor="")
        give_secrets([olt], community=CANARY)
        return Olt.objects.get(id=olt.id)
    finally:
        connections.close_all()


@pytest.fixture
def admin(client: Client) -> Client:
    user = User.objects.create_user("root", password="x")
    give_role(user, Role.ADMIN)
    client.force_login(user)
    return client


def test_the_canary_is_in_no_log(polled: Olt, caplog: pytest.LogCaptureFixture) -> None:
    """S3-26: at the chattiest level, after a run that failed."""
    lines = [record.getMessage() for record in caplog.get_records("setup")]

    assert any("failure=refused" in line for line in lines)
    assert not [line for line in lines if CANARY in line]


def test_the_canary_is_in_no_column_and_no_dump(polled: Olt) -> None:
    """S3-24."""
    with connection.cursor() as cursor:
        for model in apps.get_models():
            cursor.execute(f"SELECT * FROM {connection.ops.quote_name(model._meta.db_table)}")  # noqa: S608 our own names
            assert CANARY not in str(cursor.fetchall()), model
    assert CANARY not in serializers.serialize("json", Olt.objects.all())


@pytest.mark.parametrize(
    "resource", ["olts", "nodes", "executions", "onus", "pollers", "pollers/queue", "pollers/stats"]
)
def test_the_canary_is_in_no_answer_of_the_api(polled: Olt, admin: Client, resource: str) -> None:
    answer = admin.get(f"/api/v1/{resource}/")

    assert answer.status_code == 200
    assert CANARY not in answer.content.decode()
    assert CANARY not in admin.get(f"/api/v1/olts/{polled.id}/").content.decode()


def test_the_canary_is_on_no_page(polled: Olt, admin: Client) -> None:
    pages = ["/", "/onus/", reverse("admin:hosts_olt_changelist"), reverse("admin:hosts_olt_change", args=[polled.id])]
    pages.append(reverse("admin:executions_execution_changelist"))

    for page in pages:
        answer = admin.get(page)
        assert answer.status_code == 200, page
        assert CANARY not in answer.content.decode(), page


def test_the_canary_is_in_no_export(polled: Olt) -> None:
    text = write_entries(export_entries())

    assert polled.name in text
    assert CANARY not in text


def test_the_canary_is_in_no_traceback(polled: Olt) -> None:
    """Also not in one that shows local variables."""

    def fail(olt: Olt) -> None:
        secret = olt.community
        raise RuntimeError(f"{olt!r} {secret}")

    with pytest.raises(RuntimeError) as caught:
        fail(Olt.objects.get(id=polled.id))

    shown = traceback.TracebackException.from_exception(caught.value, capture_locals=True)
    assert CANARY not in "".join(shown.format())
