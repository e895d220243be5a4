"""Zabbix gets values of OLTs: a real server takes and stores them, and the template has an item for each."""

import asyncio
import json
import re
import socket
import struct
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from api.coordinator_rows import make_tracker, make_violation
from api.rows import NOW, make_execution, make_node, make_olt, make_onu
from dashboard.outage_rows import make_outage
from facho.core.env import read_environment
from facho.execution_coordinator.models import QuotaTracker, QuotaViolation
from facho.neighbours.zabbix import (
    CHUNK,
    KEYS,
    MOST_ANSWER_BYTES,
    NotTaken,
    ZabbixSender,
    ZabbixValue,
    host_name,
    load_values,
    pack,
    read_answer,
    send_values,
    unpack_header,
)
from facho.onus.models import OnuReading
from facho.polling.domain.execution_state import ExecutionState
from facho.polling.domain.schedule import hour_of
from servers.zabbix import private_zabbix

TEMPLATE = Path(__file__).parents[2] / "deploy/zabbix/facho-olt.yaml"
TAKEN = {"response": "success", "info": "processed: 1; failed: 0; total: 1; seconds spent: 0.000061"}


def template() -> dict[str, Any]:
    export: dict[str, Any] = yaml.safe_load(TEMPLATE.read_text())["zabbix_export"]
    return export


def items() -> dict[str, dict[str, Any]]:
    [one] = template()["templates"]
    return {item["key"]: item for item in one["items"]}


def make_busy_olt(now: datetime) -> None:
    """Make an OLT of which everything is known."""
    olt = make_olt("Centro 1/ñ", reachability="up", last_answer_at=now - timedelta(seconds=12))
    for number, (state, light) in enumerate([("online", -2900), ("online", -2000), ("offline", None)], 1):
        onu = make_onu(olt, (0, 1, 3, number), run_state=state)
        OnuReading.objects.filter(onu=onu).update(rx_power_cdbm=light)
    node = make_node(olt, next_run_at=now - timedelta(seconds=90))
    make_node(olt, suspended_at=now, suspend_reason="timeout", next_run_at=None)
    result = {"round_trips": 4, "round_trips_ms": 30}
    make_execution(node, ExecutionState.SUCCESS, at=now - timedelta(minutes=2), result=result)
    make_outage(olt, started_at=now, down=5)
    make_violation(olt)
    QuotaViolation.objects.update(created_at=now)
    make_tracker(olt, quota_required=12, quota_completed=7)
    QuotaTracker.objects.update(period_start=hour_of(now).start)


@pytest.mark.django_db
def test_every_figure_of_an_olt_is_loaded(django_assert_max_num_queries: Any) -> None:
    make_busy_olt(NOW)
    make_olt("silent", reachability="unknown")
    make_olt("off", enabled=False)

    with django_assert_max_num_queries(12):
        values = load_values(NOW, "olt-")

    own = {value.key: value.value for value in values if value.host == "olt-Centro 1__"}
    assert own == {
        "facho.olt.reachable": "1",
        "facho.olt.answer_age": "12",
        "facho.olt.round_trip": "7.5",
        "facho.olt.onus.online": "2",
        "facho.olt.onus.offline": "1",
        "facho.olt.onus.unknown": "0",
        "facho.olt.onus.weak": "1",
        "facho.olt.outages.open": "1",
        "facho.olt.outages.onus": "5",
        "facho.olt.alerts.firing": "0",
        "facho.olt.violations": "1",
        "facho.olt.quota.required": "12",
        "facho.olt.quota.completed": "7",
        "facho.olt.late": "90",
        "facho.olt.nodes.suspended": "1",
    }
    others = {value.host for value in values} - {"olt-Centro 1__"}
    assert others == {"olt-silent"}
    unknown = {value.key for value in values if value.host == "olt-silent"}
    assert set(KEYS) - unknown == {"facho.olt.reachable", "facho.olt.answer_age", "facho.olt.round_trip"}


@pytest.mark.slow
@pytest.mark.django_db
@pytest.mark.any_database
def test_a_real_server_takes_and_stores_every_value_with_the_items_of_the_template() -> None:
    make_busy_olt(NOW)
    values = load_values(NOW, "olt-")
    types = {key: item.get("value_type", "UNSIGNED") for key, item in items().items()}

    with private_zabbix("olt-Centro 1__", types) as server:
        place = ("127.0.0.1", server.port)
        refused = asyncio.run(send_values(place, values, NOW))
        strange = asyncio.run(send_values(place, [ZabbixValue("nobody", KEYS[0], "1")], NOW))
        stored = server.stored(len(values))

    assert re.match(r"zabbix_server \(Zabbix\) [67]\.", server.version)
    assert (refused, strange) == (0, 1)
    assert stored == {value.key: float(value.value) for value in values}


def test_the_template_has_exactly_the_items_that_are_sent() -> None:
    assert tuple(items()) == KEYS
    assert {(item["type"], item["delay"]) for item in items().values()} == {("TRAP", "0")}
    assert {item.get("value_type", "UNSIGNED") for item in items().values()} == {"UNSIGNED", "FLOAT"}


def test_the_template_is_one_that_zabbix_6_and_7_import() -> None:
    export = template()
    [one] = export["templates"]
    names = re.findall(r"^ *(?:- )?uuid: (\w+)$", TEMPLATE.read_text(), re.MULTILINE)

    assert export["version"] == "6.0"
    assert set(export) == {"version", "date", "groups", "templates"}
    assert set(one) == {"uuid", "template", "name", "description", "groups", "items", "macros", "valuemaps"}
    assert len(set(names)) == len(names) > len(KEYS)
    assert all(uuid.UUID(name).version == 4 and len(name) == 32 for name in names)
    assert one["groups"] == [{"name": export["groups"][0]["name"]}]
    maps = {each["name"] for each in one["valuemaps"]}
    assert {item["valuemap"]["name"] for item in one["items"] if "valuemap" in item} == maps


def test_the_triggers_look_at_items_and_macros_of_the_template() -> None:
    [one] = template()["templates"]
    macros = {macro["macro"] for macro in one["macros"]}
    triggers = [(item["key"], trigger) for item in one["items"] for trigger in item.get("triggers", ())]

    assert len(triggers) == 6
    used = set[str]()
    for key, trigger in triggers:
        shape = r"(max|min|last|nodata)\(/Facho OLT/([\w.]+)(?:,\d+m)?\)([=>])(\d+|\{\$[\w.]+\})"
        found = re.fullmatch(shape, trigger["expression"])
        assert found is not None, trigger["expression"]
        assert found[2] == key
        used |= {found[4]} if found[4].startswith("{") else set()
        assert trigger["priority"] in ("WARNING", "AVERAGE", "HIGH")
    assert used == macros


@dataclass
class Trapper:
    """A server that holds what it gets to the protocol, and answers as it is reported."""

    answer: bytes = pack(TAKEN)
    port: int = 0
    requests: list[dict[str, Any]] = field(default_factory=list)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        magic, flags, length, reserved = struct.unpack("<4sBII", await reader.readexactly(13))
        assert (magic, flags, reserved) == (b"ZBXD", 1, 0)
        self.requests.append(json.loads(await reader.readexactly(length)))
        writer.write(self.answer)
        writer.close()


@asynccontextmanager
async def listening(trapper: Trapper) -> AsyncIterator[tuple[str, int]]:
    async with await asyncio.start_server(trapper.serve, "127.0.0.1", trapper.port) as server:
        trapper.port = server.sockets[0].getsockname()[1]
        yield "127.0.0.1", trapper.port


def numbered(count: int) -> list[ZabbixValue]:
    return [ZabbixValue(f"olt-{number}", KEYS[0], "1") for number in range(count)]


def test_many_values_go_in_chunks() -> None:
    trapper = Trapper()

    async def send() -> None:
        async with listening(trapper) as place:
            await ZabbixSender([place]).send(numbered(2 * CHUNK + 1), NOW)

    asyncio.run(send())

    assert [len(request["data"]) for request in trapper.requests] == [CHUNK, CHUNK, 1]
    first = trapper.requests[0]
    assert (first["request"], first["clock"]) == ("sender data", int(NOW.timestamp()))
    assert first["data"][0] == {"host": "olt-0", "key": KEYS[0], "value": "1", "clock": int(NOW.timestamp())}


def test_a_failure_is_logged_once_and_so_is_its_end(caplog: pytest.LogCaptureFixture) -> None:
    trapper = Trapper()
    with socket.create_server(("127.0.0.1", 0)) as gone:
        trapper.port = gone.getsockname()[1]
    place = ("127.0.0.1", trapper.port)
    other = Trapper()
    caplog.set_level("INFO", "facho.neighbours.zabbix")

    async def send_for_minutes() -> None:
        async with listening(other) as works:
            sender = ZabbixSender([place, works])
            for _minute in range(3):
                await sender.send(numbered(1), NOW)
            async with listening(trapper):
                for info in ("processed: 0; failed: 1; total: 1", "processed: 1; failed: 0; total: 1"):
                    trapper.answer = pack({"response": "success", "info": f"{info}; seconds spent: 0"})
                    await sender.send(numbered(1), NOW)
                    await sender.send(numbered(1), NOW)

    asyncio.run(send_for_minutes())

    assert [record.getMessage() for record in caplog.records] == [
        f"zabbix.failed server=127.0.0.1:{trapper.port} error=ConnectionRefusedError",
        f"zabbix.refused server=127.0.0.1:{trapper.port} values=1 of=1",
        f"zabbix.works_again server=127.0.0.1:{trapper.port}",
    ]
    assert len(other.requests) == 7


def test_a_server_that_never_answers_holds_up_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("facho.neighbours.zabbix.REQUEST_SECONDS", 0.3)
    other = Trapper()

    async def send() -> None:
        with socket.create_server(("127.0.0.1", 0)) as silent:
            async with listening(other) as works:
                await ZabbixSender([silent.getsockname(), works]).send(numbered(1), NOW)

    asyncio.run(send())

    assert len(other.requests) == 1


@pytest.mark.parametrize(
    "header",
    [
        b"HTTP/1.1 400 ",
        struct.pack("<4sBII", b"ZBXD", 3, 10, 20),
        struct.pack("<4sBII", b"ZBXD", 5, 10, 0),
        struct.pack("<4sBII", b"ZBXD", 1, MOST_ANSWER_BYTES + 1, 0),
    ],
)
def test_what_is_no_answer_of_zabbix_is_refused(header: bytes) -> None:
    with pytest.raises(ValueError, match="no answer"):
        unpack_header(header)


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (b'{"response":"failed","info":"x"}', NotTaken),
        (b"[]", NotTaken),
        (b'{"response":"success"}', ValueError),
        (b"\xff", ValueError),
    ],
)
def test_what_does_not_say_that_it_was_taken_is_a_failure(body: bytes, error: type[Exception]) -> None:
    with pytest.raises(error):
        read_answer(body)


def test_hosts_have_names_that_zabbix_takes() -> None:
    assert host_name("isp ", "Centro/1 (Ñ)") == "isp Centro_1 ___"
    assert len(host_name("", "x" * 500)) == 128


@pytest.mark.parametrize(
    ("text", "servers"),
    [
        ("", ()),
        ("zabbix.example.net", (("zabbix.example.net", 10051),)),
        ("a:10052, [2001:db8::1]:99 ,[2001:db8::2]", (("a", 10052), ("2001:db8::1", 99), ("2001:db8::2", 10051))),
    ],
)
def test_servers_are_read_with_and_without_a_port(text: str, servers: tuple[tuple[str, int], ...]) -> None:
    assert read_environment({"FACHO_ZABBIX_SERVER": text})["FACHO_ZABBIX_SERVER"] == servers


@pytest.mark.parametrize("text", ["a:0", "a:70000", "a:b", ":10051", "a b"])
def test_what_is_no_server_is_a_problem(text: str) -> None:
    problems = read_environment({"FACHO_ZABBIX_SERVER": text}).problems

    assert [problem.name for problem in problems] == ["FACHO_ZABBIX_SERVER"]
