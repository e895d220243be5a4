"""An OLT with everything that SmartOLT's calls tell of, and a client that asks as a billing system does."""

import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from django.test import Client

from api.rows import make_olt, make_olt_value, make_onu, make_user, make_waiting_onu
from facho.accounts.roles import Role
from facho.api.tokens import create_token
from facho.hosts.models import Brand, Olt, OltModel
from facho.onus.models import Onu, OnuCustomer, Outage
from facho.plant.models import Box, OnuAttachment, Zone
from web.every_address import body_of

SINCE = datetime(2030, 5, 6, 7, 8, 9, tzinfo=UTC)
OUTSIDE = "192.0.2.7"


@dataclass
class SmartOltClient:
    """Asks with the token in SmartOLT's header, from another machine."""

    token: str

    def ask(self, call: str, method: str = "GET", **query: Any) -> tuple[int, Any]:
        """Return status and answer of a call."""
        answer = Client().generic(
            method,
            f"/smartolt/api/{call}",
            QUERY_STRING="&".join(f"{name}={value}" for name, value in query.items()),
            REMOTE_ADDR=OUTSIDE,
            headers={"X-Token": self.token, "Accept-Language": "en"},
        )
        return answer.status_code, json.loads(body_of(answer))

    def get(self, call: str, **query: Any) -> Any:
        """Return the answer of a call that succeeds."""
        status, answer = self.ask(call, **query)
        assert (status, answer["status"], answer["response_code"]) == (200, True, "success"), answer
        return answer


def make_client(role: Role = Role.VIEWER) -> SmartOltClient:
    return SmartOltClient(create_token(make_user(role)))


def make_centro() -> Olt:
    model = OltModel.objects.create(brand=Brand.objects.create(name="Huawei"), name="MA5608T")
    return make_olt("CENTRO", model=model, reachability="up")


def make_lit_onu(olt: Olt, **fields: Any) -> Onu:
    """Make an ONU that is online, with customer, box and light."""
    values = {"serial": "HWTC0000000A", "model": "EG8145V5", "description": "on the OLT", "admin_state": "enabled"}
    light = {"rx_power_cdbm": -2174, "olt_rx_power_cdbm": -2398, "distance_m": 1447}
    reading = {"run_state": "online", "state_since": SINCE, **light}
    onu = make_onu(olt, (0, 1, 3, 7), **{**values, **reading, **fields})
    OnuCustomer.objects.create(onu=onu, label="Ana Pérez", address="Calle 1", phone="555 1234")
    zone = Zone.objects.create(name="Centro")
    box = Box.objects.create(name="CTO 56", zone=zone, pon_port=onu.pon_port, outputs=8, latitude=4.61, longitude=-74.0)
    OnuAttachment.objects.create(onu=onu, box=box, source="hand")
    return onu


def make_everything() -> Olt:
    """Make a row for every call."""
    olt = make_centro()
    make_lit_onu(olt)
    make_olt_value(olt, "sys.uptime", value="67408000", unit="cs", index="", place="")
    make_olt_value(olt, "board.temperature", value="41", unit="degC")
    make_olt_value(olt, "board.temperature", value="43", unit="degC", place="0/2")
    make_olt_value(olt, "pon.tx_power", value="7.73", unit="dBm", place="0/1/3")
    make_waiting_onu(olt, serial="HWTC0000000B")
    Outage.objects.create(
        olt=olt, scope="pon", cause="fibre", slot=1, port=3, affected=1, down=0, started_at=SINCE, resumed_at=SINCE
    )
    down = {"run_state": "offline", "last_down_cause": "los", "state_since": SINCE + timedelta(minutes=1)}
    make_onu(olt, (0, 1, 3, 8), serial="HWTC0000000C", **down)
    return olt
