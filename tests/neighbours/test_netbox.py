"""What is asked of NetBox, and what of its answers is believed: a server that answers as NetBox does, or worse."""

import ssl
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from pytest_django import Settings

from facho.core.env import read_environment
from facho.neighbours import netbox as asking
from facho.neighbours.netbox import NetBoxAway, fetch_count, fetch_devices, read_device
from servers.netbox import DEVICES, NetBox, named, netbox_server
from servers.slapd import write_certificates


def test_all_pages_are_read_though_the_server_has_shorter_ones(netbox: NetBox) -> None:
    for number in range(1, 121):
        netbox.add(number, f"olt-{number}", f"10.20.0.{number}")
    netbox.most_per_page = 40

    devices = fetch_devices()

    assert [device.id for device in devices] == list(range(1, 121))
    assert (devices[6].name, devices[6].address, devices[6].status) == ("olt-7", "10.20.0.7", "active")
    assert (len(netbox.asked), fetch_count()) == (3, 120)


def test_the_settings_name_roles_sites_and_a_tag(netbox: NetBox, settings: Settings) -> None:
    settings.FACHO_NETBOX_ROLES = ("olt", "router")
    settings.FACHO_NETBOX_SITES = ("centro", "norte")
    settings.FACHO_NETBOX_TAG = "facho"
    netbox.add(1, "olt-1", "10.20.0.1", tags=[named(1, "facho")])
    netbox.add(2, "olt-2", "10.20.0.2")
    netbox.add(3, "olt-3", "10.20.0.3", tags=[named(1, "facho")], site=named(2, "sur"))

    devices = fetch_devices()

    assert [device.id for device in devices] == [1]
    ((_method, path),) = netbox.asked
    query = parse_qs(urlsplit(path).query)
    assert (query["role"], query["site"], query["tag"]) == (["olt", "router"], ["centro", "norte"], ["facho"])
    assert query["exclude"] == ["config_context"]


@pytest.mark.parametrize(
    ("primary", "expected"),
    [
        ({"primary_ip": {"address": "2001:db8::7/64"}, "primary_ip4": {"address": "10.1.1.1/8"}}, "2001:db8::7"),
        ({"primary_ip": None, "primary_ip4": {"address": "10.1.1.1/8"}}, "10.1.1.1"),
        ({"primary_ip": None, "primary_ip6": {"address": "2001:DB8:0::7/64"}}, "2001:db8::7"),
        ({"primary_ip": {"address": "10.1.1.1/8; rm"}}, ""),
        ({"primary_ip": "10.1.1.1"}, ""),
    ],
)
def test_the_address_is_the_one_that_netbox_prefers(netbox: NetBox, primary: dict[str, object], expected: str) -> None:
    netbox.add(1, "olt-1", None, **primary)

    assert fetch_devices()[0].address == expected


def test_the_role_is_found_under_its_old_name(netbox: NetBox) -> None:
    """NetBox 3.5 and earlier."""
    device = netbox.add(1, "olt-1", "10.20.0.1")
    device["device_role"] = device.pop("role")

    assert fetch_devices()[0].role == "olt"


@pytest.mark.parametrize("token", ["0123456789abcdef0123456789abcdef01234567", "nbt_aBcDeFgHiJkL.0123456789"])
def test_tokens_of_both_kinds_are_sent_as_netbox_wants_them(netbox: NetBox, tmp_path: Path, token: str) -> None:
    netbox.token = token
    (tmp_path / "token").write_text(token)
    netbox.add(1, "olt-1", "10.20.0.1")

    assert len(fetch_devices()) == 1


@pytest.mark.parametrize("text", ["", "two words", "a\r\nHost: x", "tökén", "\x00"])
def test_a_token_that_could_be_more_than_one_is_not_sent(netbox: NetBox, tmp_path: Path, text: str) -> None:
    (tmp_path / "token").write_text(text)

    with pytest.raises(NetBoxAway, match="FACHO_NETBOX_TOKEN_FILE"):
        fetch_devices()

    assert netbox.asked == []


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("forbidden", "refuses the token (403)"),
        ("500", "answers with an error (500)"),
        ("slow", "did not answer within"),
        ("huge", "is too long"),
        ("deep", "is not NetBox"),
        ("html", "is not NetBox"),
        ("scalar", "is not NetBox"),
        ("redirect", "redirects the request (302)"),
        ("endless", "has more than"),
    ],
)
def test_what_goes_wrong_is_said_in_a_sentence_without_the_token(
    netbox: NetBox, fault: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "ASK_SECONDS", 0.3 if fault == "slow" else 20)
    monkeypatch.setattr(asking, "MOST_DEVICES", 200)
    netbox.add(1, "olt-1", "10.20.0.1")
    netbox.fault = fault

    with pytest.raises(NetBoxAway) as caught:
        fetch_devices()

    assert words in str(caught.value)
    assert netbox.token not in str(caught.value)
    assert len(netbox.asked) <= 200


@pytest.mark.parametrize("fault", ["redirect", "foreign_next"])
def test_no_answer_leads_to_another_host(netbox: NetBox, fault: str) -> None:
    for number in range(1, 61):
        netbox.add(number, f"olt-{number}", f"10.20.0.{number}")
    with netbox_server() as other:
        netbox.fault, netbox.elsewhere = fault, other.url
        try:
            found = len(fetch_devices())
        except NetBoxAway:
            found = 0

    assert other.asked == []
    assert found == (60 if fault == "foreign_next" else 0)


def test_a_role_that_netbox_does_not_have_is_said(netbox: NetBox, settings: Settings) -> None:
    settings.FACHO_NETBOX_ROLES = ("gpon",)

    with pytest.raises(NetBoxAway, match=r"\(400\): check that it has the roles"):
        fetch_devices()


def test_nobody_at_the_address_is_said(netbox: NetBox, settings: Settings) -> None:
    with netbox_server() as gone:
        settings.FACHO_NETBOX_URL = gone.url

    with pytest.raises(NetBoxAway, match="cannot be reached"):
        fetch_count()


@pytest.mark.parametrize("is_trusted", [True, False], ids=["trusted", "unknown"])
def test_the_certificate_has_to_be_one_that_the_machine_trusts(
    netbox: NetBox, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_trusted: bool
) -> None:
    write_certificates(tmp_path)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(tmp_path / "server.pem", tmp_path / "server.key")
    trusting = ssl.create_default_context(cafile=tmp_path / "ca.pem" if is_trusted else None)
    monkeypatch.setattr("facho.alerts.http_request._trusted", lambda: trusting)

    with netbox_server(tls) as secured:
        settings.FACHO_NETBOX_URL = f"https://localhost:{secured.port}"
        try:
            message = f"{fetch_count()} devices"
        except NetBoxAway as error:
            message = str(error)

    assert (message == "0 devices") is is_trusted
    assert ("This machine does not trust the certificate of NetBox" in message) is not is_trusted


@pytest.mark.parametrize("row", [7, {"id": "1"}, {"id": True}, {"id": -1}, {"id": 2**63}, {}])
def test_a_row_without_an_id_is_no_device(netbox: NetBox, row: object) -> None:
    with pytest.raises(NetBoxAway, match="is not NetBox"):
        read_device(row)


def test_a_device_of_any_shape_is_read_and_bounded() -> None:
    hostile = {"id": 1, "name": "x" * 10_000, "status": "active", "role": ["olt"], "tags": [None, {"slug": 7}]}

    device = read_device({**hostile, "custom_fields": [1], "site": {"slug": {}}})

    assert (len(device.name), device.status, device.role, device.site, device.address) == (200, "", "", "", "")


@pytest.mark.parametrize(
    ("url", "is_taken"),
    [
        ("https://netbox.example.net", True),
        ("https://netbox.example.net/dcim/", True),
        ("http://127.0.0.1:8000", True),
        ("http://netbox.example.net", False),
        ("https://user:word@netbox.example.net", False),
        ("https://netbox.example.net/?next=x", False),
        ("file:///etc/passwd", False),
    ],
)
def test_the_token_goes_by_tls_or_stays_on_this_machine(url: str, is_taken: bool) -> None:
    assert (read_environment({"FACHO_NETBOX_URL": url}).problems == ()) is is_taken


def test_a_base_path_is_kept(netbox: NetBox, settings: Settings) -> None:
    settings.FACHO_NETBOX_URL = f"{netbox.url}/netbox/"

    with pytest.raises(NetBoxAway, match="404"):
        fetch_count()

    assert netbox.asked[0][1].startswith(f"/netbox{DEVICES}?")
