"""Programs that were written for SmartOLT's API are answered in its shape, and never reported what is not known."""

from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from api.rows import make_olt, make_onu, make_user, make_waiting_onu
from facho.accounts.roles import Role
from facho.accounts.throttle import FREE, Guess
from facho.api.tokens import create_token
from facho.hosts.models import Olt, OltGroup
from facho.neighbours import smartolt
from facho.onus.models import Onu, OnuReading
from facho.plant.models import Zone
from neighbours import recorded_shapes as recorded
from neighbours.smartolt_world import (
    OUTSIDE,
    SmartOltClient,
    make_centro,
    make_client,
    make_everything,
    make_lit_onu,
)

pytestmark = pytest.mark.django_db

LISTS = (
    ("system/get_olts", "response", recorded.GET_OLTS),
    ("system/get_zones", "response", recorded.GET_ZONES),
    ("system/get_odbs/{zone}", "response", recorded.GET_ODBS),
    ("system/get_olt_pon_ports_details/{olt}", "response", recorded.GET_PON_PORTS),
    ("system/get_outage_pons/{olt}", "response", recorded.GET_OUTAGE_PONS),
    ("olt/get_olts_uptime_and_env_temperature", "response", recorded.GET_UPTIMES),
    ("onu/get_onus_statuses", "response", recorded.GET_STATUSES),
    ("onu/get_onus_signals", "response", recorded.GET_SIGNALS),
    ("onu/get_onus_administrative_statuses", "response", recorded.GET_ADMIN_STATUSES),
    ("onu/get_all_onus_details", "onus", recorded.DETAILS),
    ("onu/get_all_onus_gps_coordinates", "onus", recorded.GET_GPS),
    ("onu/unconfigured_onus", "response", recorded.UNCONFIGURED),
    ("onu/unconfigured_onus_for_olt/{olt}", "response", recorded.UNCONFIGURED),
    ("onu/get_onus_details_by_sn/HWTC0000000A", "onus", recorded.ONE_DETAILS),
)
SINGLES = (
    ("onu/get_onu_status/HWTC0000000A", recorded.ONE_STATUS),
    ("onu/get_onu_signal/HWTC0000000A", recorded.ONE_SIGNAL),
    ("onu/get_onu_administrative_status/HWTC0000000A", recorded.ONE_ADMIN_STATUS),
)
# Session of the token, its user with role and groups; then the rows.
BEFORE = 5


@pytest.fixture
def client_of_billing() -> SmartOltClient:
    return make_client()


@pytest.mark.parametrize(("call", "key", "shape"), LISTS)
def test_every_list_has_the_recorded_keys_and_types(
    client_of_billing: SmartOltClient, call: str, key: str, shape: dict[str, Any]
) -> None:
    olt = make_everything()

    answer = client_of_billing.get(call.format(olt=olt.pk, zone=Zone.objects.get().pk))

    assert answer[key]
    assert [recorded.misfits(row, shape) for row in answer[key] if recorded.misfits(row, shape)] == []


@pytest.mark.parametrize(("call", "shape"), SINGLES)
def test_every_answer_about_one_onu_has_the_recorded_keys_and_types(
    client_of_billing: SmartOltClient, call: str, shape: dict[str, Any]
) -> None:
    make_everything()

    answer = client_of_billing.get(call)

    assert recorded.misfits(answer, shape) == []


def test_no_outages_of_an_olt_that_never_answered_is_no_claim(client_of_billing: SmartOltClient) -> None:
    olt = make_olt("NORTE", reachability="unknown")

    assert client_of_billing.ask(f"system/get_outage_pons/{olt.pk}")[0] == 503


def test_an_onu_is_reported_with_customer_box_and_light(client_of_billing: SmartOltClient) -> None:
    olt = make_centro()
    make_lit_onu(olt)

    reported = client_of_billing.get("onu/get_onu_details/HWTC0000000A")["onu_details"]

    assert recorded.misfits(reported, recorded.ONE_DETAILS) == []
    known = {name: value for name, value in reported.items() if value not in (None, [])}
    assert known == {
        "unique_external_id": "HWTC0000000A",
        "sn": "HWTC0000000A",
        "pon_type": "gpon",
        "olt_id": str(olt.pk),
        "olt_name": "CENTRO",
        "board": "1",
        "port": "3",
        "onu": "7",
        "onu_type_name": "EG8145V5",
        "zone_id": str(Zone.objects.get().pk),
        "zone_name": "Centro",
        "name": "Ana Pérez",
        "address": "Calle 1",
        "contact": "555 1234",
        "odb_id": str(Zone.objects.get().boxes.get().pk),
        "odb_name": "CTO 56",
        "administrative_status": "Enabled",
        "status": "Online",
        "last_status_change": "2030-05-06 07:08:09",
        "signal": "Very good",
        "signal_1310": "-23.98",
        "signal_1490": "-21.74",
        "distance": "1447",
        "latitude": "4.61",
        "longitude": "-74.0",
    }


@pytest.mark.parametrize(
    ("state", "cause", "status"),
    [
        ("online", "los", "Online"),
        ("offline", "dying_gasp", "Power fail"),
        ("offline", "power_off", "Power fail"),
        ("offline", "los", "LOS"),
        ("offline", "lof", "LOS"),
        ("offline", "deactivated", "Offline"),
        ("offline", "", "Offline"),
        ("unknown", "los", "Unknown"),
    ],
)
def test_states_are_reported_in_the_other_products_words(
    client_of_billing: SmartOltClient, state: str, cause: str, status: str
) -> None:
    make_onu(make_centro(), serial="HWTC0000000A", run_state=state, last_down_cause=cause)

    assert client_of_billing.get("onu/get_onu_status/HWTC0000000A")["onu_status"] == status
    assert [row["status"] for row in client_of_billing.get("onu/get_onus_statuses")["response"]] == [status]


@pytest.mark.parametrize("silence", [{"reachability": "down"}, {"enabled": False}])
def test_nothing_is_reported_of_what_is_behind_a_silent_olt(
    client_of_billing: SmartOltClient, silence: dict[str, Any]
) -> None:
    olt = make_everything()
    Olt.objects.update(**silence)

    details = client_of_billing.get("onu/get_all_onus_details")["onus"]

    assert {row["status"] for row in details} == {"Unknown"}
    assert {row["last_status_change"] for row in details} == {None}
    assert {(row["signal"], row["signal_1310"], row["signal_1490"]) for row in details} == {("-", "-", "-")}
    assert client_of_billing.get("onu/get_onu_signal/HWTC0000000A")["onu_signal_value"] == "-"
    [uptime] = client_of_billing.get("olt/get_olts_uptime_and_env_temperature")["response"]
    assert (uptime["uptime"], uptime["env_temp"]) == (None, None)
    for call in ("system/get_outage_pons", "system/get_olt_pon_ports_details", "onu/unconfigured_onus_for_olt"):
        status, answer = client_of_billing.ask(f"{call}/{olt.pk}")
        assert (status, answer["status"]) == (503, False)


@pytest.mark.parametrize(
    ("at_onu", "at_olt", "signal"),
    [
        (-2500, None, "Very good"),
        (-2501, -1000, "Warning"),
        (-2700, None, "Warning"),
        (-2701, None, "Critical"),
        (None, -2800, "Critical"),
        (None, None, "-"),
    ],
)
def test_light_is_judged_by_the_onu_and_else_by_the_olt(
    client_of_billing: SmartOltClient, at_onu: int | None, at_olt: int | None, signal: str
) -> None:
    light = {"rx_power_cdbm": at_onu, "olt_rx_power_cdbm": at_olt}
    make_onu(make_centro(), serial="HWTC0000000A", run_state="online", **light)

    words = {"Very good": "very_good", "Warning": "warning", "Critical": "critical"}
    found = [client_of_billing.get("onu/get_all_onus_details", signal=word)["onus"] for word in words.values()]

    assert client_of_billing.get("onu/get_onu_signal/HWTC0000000A")["onu_signal"] == signal
    assert [len(onus) for onus in found] == [int(name == signal) for name in words]


def test_the_light_of_an_onu_that_is_down_is_not_reported(client_of_billing: SmartOltClient) -> None:
    make_onu(make_centro(), serial="HWTC0000000A", run_state="offline", rx_power_cdbm=-2100)

    [row] = client_of_billing.get("onu/get_onus_signals")["response"]

    assert (row["signal"], row["signal_1310"], row["signal_1490"]) == ("-", "-", "-")


def test_uptime_and_the_hottest_temperature_are_reported_as_texts(client_of_billing: SmartOltClient) -> None:
    make_everything()

    [reported] = client_of_billing.get("olt/get_olts_uptime_and_env_temperature")["response"]

    assert (reported["uptime"], reported["env_temp"]) == ("7 days, 19:14", "43°C")


def test_a_port_is_reported_with_counts_and_light(client_of_billing: SmartOltClient) -> None:
    olt = make_everything()

    [port] = client_of_billing.get(f"system/get_olt_pon_ports_details/{olt.pk}")["response"]
    [outage] = client_of_billing.get(f"system/get_outage_pons/{olt.pk}")["response"]

    assert (port["board"], port["pon_port"], port["onus_count"], port["online_onus_count"]) == ("1", "3", 2, 1)
    assert (port["average_signal"], port["tx_power"]) == (-21.74, "7.73")
    assert (outage["cause"], outage["total_onus"], outage["los_count"], outage["power_count"]) == ("LOS", "2", "1", "0")
    assert outage["latest_status_change"] == "2030-05-06 07:09:09"


@pytest.mark.parametrize("spelled", ["HWTC0000000A", "hwtc0000000a", "485754430000000A"])
def test_an_onu_is_found_by_its_serial_in_any_notation(client_of_billing: SmartOltClient, spelled: str) -> None:
    make_lit_onu(make_centro())

    assert client_of_billing.get(f"onu/get_onu_status/{spelled}")["onu_status"] == "Online"


def test_an_onu_is_found_by_its_place_and_named_so_where_it_has_no_serial(client_of_billing: SmartOltClient) -> None:
    olt = make_centro()
    make_onu(olt, (0, 1, 3, 7), serial="", run_state="online")

    [row] = client_of_billing.get("onu/get_onus_statuses")["response"]

    assert row["unique_external_id"] == f"{olt.pk}-0-1-3-7"
    assert client_of_billing.get(f"onu/get_onu_status/{row['unique_external_id']}")["onu_status"] == "Online"


def test_an_epon_onu_is_known_by_its_hardware_address(client_of_billing: SmartOltClient) -> None:
    make_onu(make_centro(), serial="", mac="AA:BB:CC:00:11:22", run_state="online")

    reported = client_of_billing.get("onu/get_onu_details/aabbcc001122")["onu_details"]

    assert (reported["unique_external_id"], reported["sn"], reported["pon_type"]) == ("AA:BB:CC:00:11:22",) * 2 + (
        "epon",
    )


def test_two_onus_with_one_serial_are_asked_by_place(client_of_billing: SmartOltClient) -> None:
    olt = make_centro()
    for number in (7, 8):
        make_onu(olt, (0, 1, 3, number), serial="HWTC0000000A", run_state="online")

    status, answer = client_of_billing.ask("onu/get_onu_status/HWTC0000000A")

    assert (status, answer["status"]) == (409, False)
    assert f"{olt.pk}-0-1-3-7, {olt.pk}-0-1-3-8" in answer["error"]
    assert len(client_of_billing.get("onu/get_onus_details_by_sn/HWTC0000000A")["onus"]) == 2


@pytest.mark.parametrize(
    "wrong", ["HWTC0000000B", "1-2-3-4-5", "x" * 500, "%00", "%27%20OR%201=1", "9-9-9-9-999999999"]
)
def test_an_onu_that_nobody_knows_is_an_error_without_its_name(client_of_billing: SmartOltClient, wrong: str) -> None:
    status, answer = client_of_billing.ask(f"onu/get_onu_status/{wrong}")

    assert (status, answer) == (
        404,
        {"status": False, "response_code": "error", "error": "There is no ONU with this id."},
    )


def test_an_onu_that_left_its_olt_is_in_no_answer(client_of_billing: SmartOltClient) -> None:
    onu = make_lit_onu(make_centro())
    Onu.objects.filter(pk=onu.pk).update(is_present=False, absent_since=onu.first_seen_at)

    assert client_of_billing.get("onu/get_onus_statuses")["response"] == []
    assert client_of_billing.ask("onu/get_onu_status/HWTC0000000A")[0] == 404


def test_lists_are_narrowed(client_of_billing: SmartOltClient) -> None:
    olt = make_centro()
    make_lit_onu(olt)
    make_onu(olt, (0, 2, 3, 1), serial="HWTC0000000B", run_state="offline", last_down_cause="dying_gasp")
    make_onu(make_olt("NORTE"), (0, 1, 3, 1), serial="HWTC0000000C", run_state="offline", last_down_cause="reset")

    def serials(**query: Any) -> str:
        onus = client_of_billing.get("onu/get_all_onus_details", **query)["onus"]
        return "".join(row["sn"][-1] for row in onus)

    assert serials() == serials(olt_id="") == "ABC"
    assert serials(olt_id=olt.pk) == "AB"
    assert serials(olt_id=olt.pk, board=2) == "B"
    assert serials(board=1, port=3) == "AC"
    assert serials(zone="Centro") == serials(odb="CTO%2056") == "A"
    assert serials(sn="HWTC0000000B") == serials(external_id=f"{olt.pk}-0-2-3-1") == "B"
    assert serials(status="online") == "A"
    assert serials(status="pwrfail,offline") == "BC"
    assert serials(status="los") == ""


@pytest.mark.parametrize(
    "query",
    [
        {"updated_since": "2026-01-01"},
        {"statuss": "online"},
        {"status": "up"},
        {"signal": "good"},
        {"olt_id": "x"},
        {"page": "0"},
        {"page_size": "-1"},
        {"fields": "sn,secret"},
    ],
)
def test_what_narrows_nothing_is_refused_instead_of_telling_everything(
    client_of_billing: SmartOltClient, query: dict[str, Any]
) -> None:
    make_lit_onu(make_centro())

    status, answer = client_of_billing.ask("onu/get_all_onus_details", **query)

    assert (status, answer["status"], answer["response_code"]) == (400, False, "error")
    assert answer["error"].startswith(f"{next(iter(query))}: ")


def test_details_come_in_pages_and_with_the_fields_that_were_asked_for(client_of_billing: SmartOltClient) -> None:
    olt = make_centro()
    for number in range(5):
        make_onu(olt, (0, 1, 3, number), serial=f"HWTC0000000{number}")

    pages = [
        client_of_billing.get("onu/get_all_onus_details", page=page, page_size=2, fields="sn,onu") for page in (1, 3, 4)
    ]

    assert {key: pages[0][key] for key in ("page", "page_size", "total_items", "total_pages")} == {
        "page": 1,
        "page_size": 2,
        "total_items": 5,
        "total_pages": 3,
    }
    assert [page["onus"] for page in pages] == [
        [{"sn": "HWTC00000000", "onu": "0"}, {"sn": "HWTC00000001", "onu": "1"}],
        [{"sn": "HWTC00000004", "onu": "4"}],
        [],
    ]
    assert client_of_billing.get("onu/get_all_onus_details", page=9**18, page_size=9**9)["onus"] == []
    [whole] = client_of_billing.get("onu/get_all_onus_details", sn="HWTC00000000", fields="sn")["onus"]
    assert whole == {"sn": "HWTC00000000"}


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
@pytest.mark.parametrize("call", ["onu/reboot/HWTC0000000A", "onu/authorize_onu", "onu/get_onus_statuses"])
def test_a_call_that_writes_is_refused_with_the_reason(
    client_of_billing: SmartOltClient, method: str, call: str
) -> None:
    status, answer = client_of_billing.ask(call, method)

    assert (status, answer["status"]) == (405, False)
    assert answer["error"] == "Facho only reads: it changes nothing on an OLT or an ONU."


def test_a_call_that_is_not_answered_names_the_page_that_lists_the_others(client_of_billing: SmartOltClient) -> None:
    status, answer = client_of_billing.ask("onu/get_running_config/HWTC0000000A")

    assert (status, answer["status"]) == (405, False)
    assert "docs/smartolt-api.md" in answer["error"]


def test_a_bearer_token_opens_as_well_and_a_wrong_one_does_not() -> None:
    good = Client().get(
        "/smartolt/api/system/get_olts", headers={"Authorization": f"Bearer {create_token(make_user())}"}
    )
    status, answer = SmartOltClient("wrong").ask("system/get_olts")

    assert good.status_code == 200
    assert (status, answer["status"], answer["error"]) == (401, False, "The token is invalid or has expired.")


def test_guesses_of_tokens_have_to_wait_as_everywhere() -> None:
    guesser = SmartOltClient("wrong")

    free = FREE[Guess.TOKEN_FROM_ADDRESS]
    statuses = [guesser.ask("system/get_olts")[0] for _guess in range(free + 1)]
    answer = Client().get("/smartolt/api/system/get_olts", headers={"X-Token": "wrong"}, REMOTE_ADDR=OUTSIDE)

    assert statuses == [401] * free + [429]
    assert int(answer.headers["Retry-After"]) >= 1
    assert answer.json()["status"] is False
    # A valid token is still accepted from there.
    assert make_client().ask("system/get_olts")[0] == 200


def test_a_token_of_groups_shows_their_onus_alone() -> None:
    group = OltGroup.objects.create(name="North")
    make_onu(make_olt("NORTE", group=group), serial="HWTC0000000A", run_state="online")
    make_onu(make_olt("SUR"), serial="HWTC0000000B", run_state="online")
    client = SmartOltClient(create_token(make_user(Role.ADMIN), olt_groups=[group]))

    assert [row["sn"] for row in client.get("onu/get_onus_statuses")["response"]] == ["HWTC0000000A"]
    assert client.ask("onu/get_onu_status/HWTC0000000B")[0] == 404
    assert [row["name"] for row in client.get("system/get_olts")["response"]] == ["NORTE"]


def test_it_is_off_by_default(client_of_billing: SmartOltClient, settings: Any) -> None:
    settings.FACHO_SMARTOLT_API = False

    assert client_of_billing.ask("system/get_olts")[0] == 404


@pytest.mark.parametrize("call", [call for call, _key, _shape in LISTS if "{" not in call])
def test_no_list_asks_more_for_more_rows(client_of_billing: SmartOltClient, call: str) -> None:
    olt = make_everything()
    client_of_billing.get(call)
    counts = []

    for number in (30, 31):
        for port in range(5):
            make_onu(olt, (0, port, 0, number), run_state="online")
            make_waiting_onu(olt, port=port, serial=f"ZTEG{number:04}{port:04}")
        with CaptureQueriesContext(connection) as captured:
            client_of_billing.get(call)
        counts.append(len(captured))

    assert counts[0] == counts[1] <= BEFORE + 4, [query["sql"] for query in captured]


def test_a_long_list_is_read_in_batches_and_sent_in_pieces(
    client_of_billing: SmartOltClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    olt = make_centro()
    for number in range(7):
        make_onu(olt, (0, 1, 3, number), run_state="online")
    monkeypatch.setattr(smartolt, "BATCH", 3)

    with CaptureQueriesContext(connection) as captured:
        rows = client_of_billing.get("onu/get_onus_statuses")["response"]

    batches = [query for query in captured if 'FROM "onus_onu"' in query["sql"]]
    assert ([row["onu"] for row in rows], len(batches)) == ([str(number) for number in range(7)], 4)


def test_hostile_texts_of_devices_stay_texts(client_of_billing: SmartOltClient) -> None:
    hostile = '"}]<script>\\\n\u2028,'
    make_onu(make_olt(hostile), serial="HWTC0000000A", description=hostile, model="M", run_state="online")
    OnuReading.objects.update(last_down_cause="los")

    [row] = client_of_billing.get("onu/get_all_onus_details")["onus"]

    assert (row["name"], row["olt_name"]) == (hostile, hostile)
