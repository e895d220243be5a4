"""`facho snmp`: values of an OLT on a terminal, or one line that says why there are none."""

import asyncio
import json
import threading
from collections.abc import Callable

import pytest
from cli_runner import Command, Outcome
from django.db import connections
from django.utils import timezone
from pytest_django import Settings

from facho.core.cli import snmp
from facho.executions import store
from facho.executions.models import Execution, Origin
from facho.executions.store import ClaimRequest
from facho.hosts.models import Olt
from facho.polling.domain.execution_state import ExecutionState
from facho.simulator.agent import Faults
from facho.simulator.server import SimulatedOlt, Simulation, SimulatorConfig
from facho.simulator.world import STILL
from factories import make_olt

pytestmark = pytest.mark.django_db(transaction=True)

SYS_NAME = "1.3.6.1.2.1.1.5.0"
Ask = Callable[..., Outcome]


@pytest.fixture
def ask(facho: Command, settings: Settings) -> Ask:
    """`facho snmp WAY OLT …` on a simulated OLT that `prepare` may spoil."""
    settings.FACHO_PACKET_TIMEOUT_SECONDS = 0.2

    def work(simulated: SimulatedOlt, words: tuple[str, ...], prepare: Callable[[Olt], None]) -> Outcome:
        try:
            olt = make_olt(port=simulated.port, vendor=simulated.vendor)
            prepare(olt)
            return facho("snmp", words[0], olt.name, *words[1:])
        finally:
            connections.close_all()

    async def play(words: tuple[str, ...], prepare: Callable[[Olt], None], faults: Faults) -> Outcome:
        config = SimulatorConfig(vendor="huawei_smartax", onus=8, life=STILL, faults=faults)
        async with Simulation.start(config) as simulation:
            return await asyncio.to_thread(work, simulation.olts[0], words, prepare)

    def run(*words: str, prepare: Callable[[Olt], None] = lambda olt: None, faults: Faults | None = None) -> Outcome:
        return asyncio.run(play(words, prepare, faults or Faults()))

    return run


def occupy(olt: Olt) -> None:
    store.claim([ClaimRequest(olt.id, "probe", Origin.PROBE)], owner="another", now=timezone.now())


def set_free() -> None:
    store.interrupt(Execution.objects.values_list("id", flat=True), reason="test", now=timezone.now())
    connections.close_all()


def test_single_values_are_printed_with_type_and_raw_text(ask: Ask) -> None:
    done = ask("get", SYS_NAME)

    heading, row = done.out.splitlines()
    assert (done.status, done.err) == (0, "")
    assert heading.split() == ["OID", "COLUMN", "PLACE", "TYPE", "RAW", "VALUE", "UNIT", "NOTE"]
    assert row.split()[0] == SYS_NAME
    assert "octet_string" in row


def test_a_column_is_read_of_one_onu(ask: Ask) -> None:
    places = [row["place"] for row in json.loads(ask("walk", "onu.run_state", "--json").out)]

    (row,) = json.loads(ask("get", "onu.run_state", "--at", places[0], "--json").out)

    assert (row["place"], row["column"]) == (places[0], "onu.run_state")
    assert row["value"] in ("online", "offline", "unknown")


def test_columns_stand_side_by_side_with_their_units(ask: Ask) -> None:
    done = ask("table", "onu.run_state", "onu.rx_power")

    heading, *rows = done.out.splitlines()
    assert heading.split() == ["PLACE", "onu.run_state", "onu.rx_power"]
    assert len(rows) == 8
    assert any(row.endswith("dBm") for row in rows)


def test_a_table_for_programs_is_a_list_of_places(ask: Ask) -> None:
    rows = json.loads(ask("table", "onu_state", "--json").out)

    assert len(rows) == 8
    assert {"value", "unit", "raw", "note", "oid"} == set(rows[0]["values"]["onu.run_state"])


def test_more_than_was_wanted_is_said(ask: Ask) -> None:
    done = ask("walk", "onu.run_state", "--rows", "3")

    assert (done.status, len(done.out.splitlines())) == (0, 1 + 3)
    assert done.err == "There is more: only the first 3 rows are shown.\n"


def test_a_question_is_one_run_under_the_claim_of_the_olt(ask: Ask) -> None:
    ask("walk", "onu.run_state")

    execution = Execution.objects.get()
    assert (execution.task_type, execution.origin, execution.node) == ("snmp_walk", Origin.MANUAL, None)
    assert execution.status == ExecutionState.SUCCESS


def test_who_holds_the_olt_is_said_while_it_is_waited_for(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snmp, "FIRST_LOOK_SECONDS", 0)
    reported = threading.Event()
    tell = snmp._print_status

    def tell_and_note(text: str) -> None:
        tell(text)
        reported.set()

    def free_once_reported() -> None:
        reported.wait(timeout=20)
        set_free()

    monkeypatch.setattr(snmp, "_print_status", tell_and_note)
    holder = threading.Thread(target=free_once_reported)

    def prepare(olt: Olt) -> None:
        occupy(olt)
        holder.start()

    done = ask("get", SYS_NAME, prepare=prepare)
    holder.join()

    assert (done.status, done.err.count("\n")) == (0, 1)
    assert ": a probe has held it since 20" in done.err


def test_an_olt_that_stays_busy_is_asked_for_again_later(ask: Ask) -> None:
    done = ask("get", SYS_NAME, "--wait", "1", prepare=occupy)

    assert (done.status, done.out) == (1, "")
    assert "stayed busy for 1 s" in done.err


def test_a_silent_olt_is_reported_in_one_line(ask: Ask, settings: Settings) -> None:
    settings.FACHO_PACKET_TIMEOUT_SECONDS = 0.02

    done = ask("get", SYS_NAME, faults=Faults(is_silent=True))

    assert (done.status, done.err.count("\n")) == (1, 1)
    assert "sent 0 values, then: " in done.err


@pytest.mark.parametrize(
    ("words", "change", "reported"),
    [
        (("get", "onu.nothing"), {}, "has no 'onu.nothing'"),
        (("get", "onu.rx_power"), {}, "choose one with --at"),
        (("table", "onu_state"), {"vendor": ""}, "until its vendor is known"),
        (("get", SYS_NAME), {"enabled": False}, "is disabled"),
    ],
)
def test_a_question_that_cannot_be_asked_asks_nobody(
    ask: Ask, words: tuple[str, ...], change: dict[str, object], reported: str
) -> None:
    done = ask(*words, prepare=lambda olt: bool(Olt.objects.filter(id=olt.id).update(**change)))

    assert (done.status, done.out) == (1, "")
    assert reported in done.err
    assert not Execution.objects.exists()


def test_an_unknown_olt_is_said_in_one_line(facho: Command) -> None:
    done = facho("snmp", "walk", "nowhere", "1.3.6")

    assert (done.status, done.err) == (1, 'facho: There is no OLT "nowhere"; `facho olt list` shows them.\n')


@pytest.mark.parametrize(
    "words",
    [
        ("get", "centro"),
        ("walk", "centro", "1.3", "1.4"),
        ("get", "centro", "a", "--at", "x/1"),
        ("get", "centro", "a", "--at", "0/1/2/3/4"),
        ("walk", "centro", "1.3", "--at", "0/1"),
        ("walk", "centro", "1.3", "--rows", "0"),
    ],
)
def test_wrong_use_is_reported(facho: Command, words: tuple[str, ...]) -> None:
    assert facho("snmp", *words).status == 2
