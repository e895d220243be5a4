"""`facho netbox sync` against a server that answers as NetBox 4 does."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from cli_runner import CANARY, Command
from django.contrib.admin.models import ADDITION, CHANGE, LogEntry
from pytest_django import Settings

from api.rows import make_olt, make_onu
from facho.accounts.roles import CONSOLE
from facho.core.product import BAD_CONFIGURATION
from facho.hosts.models import Brand, Olt, OltModel, Reachability
from facho.neighbours.models import NetBoxLink
from facho.neighbours.netbox_sync import plan_sync
from facho.snmp_jobs.models import Workflow
from servers.netbox import TOKEN, NetBox, named

pytestmark = pytest.mark.django_db


ANSWERED_AT = datetime(2026, 10, 1, 12, 30, 5, 250_000, tzinfo=UTC)
FIELDS = {
    "reachable": ("facho_reachable", "boolean"),
    "model": ("facho_model", "text"),
    "system": ("facho_system", "text"),
    "onus_online": ("facho_onus_online", "integer"),
    "onus_total": ("facho_onus_total", "integer"),
    "last_answer": ("facho_last_answer", "datetime"),
    "link": ("facho_link", "url"),
}


@pytest.fixture
def written_back(netbox: NetBox, settings: Settings) -> NetBox:
    """A NetBox with a custom field for everything that Facho knows."""
    settings.FACHO_NETBOX_FIELDS = tuple((value, field) for value, (field, _kind) in FIELDS.items())
    settings.FACHO_PUBLIC_URL = "https://facho.example.net"
    netbox.custom_fields = dict(FIELDS.values())
    return netbox


def rows(facho: Command, *options: str) -> list[tuple[Any, ...]]:
    """Sync, and return what was printed of each device."""
    return [tuple(row.values()) for row in json.loads(facho("netbox", "sync", "--json", *options).out)]


def whats(facho: Command, *options: str) -> list[tuple[str, str]]:
    return [(name, what) for _device, name, what, _details in rows(facho, *options)]


def olts() -> list[tuple[str, str, int, bool]]:
    return list(Olt.objects.order_by("id").values_list("name", "host", "port", "enabled"))


def trail() -> list[tuple[str, int, str, str]]:
    fields = ("user__username", "action_flag", "object_repr", "change_message")
    return list(LogEntry.objects.order_by("id").values_list(*fields))


def make_mixed_world(netbox: NetBox) -> None:
    """Have something of everything that a sync does."""
    make_olt("known", host="10.20.0.2", address="10.20.0.2")
    netbox.add(1, "new", "10.20.0.1")
    netbox.add(2, "known", "10.20.5.2")
    netbox.add(3, "nowhere", "192.0.2.1")
    netbox.add(4, "planned", "10.20.0.4")
    netbox.set_status(4, "planned")
    ended = make_olt("ended", host="10.20.0.5", address="10.20.0.5")
    netbox.add(5, "ended", "10.20.0.5")
    netbox.set_status(5, "decommissioning")
    gone = make_olt("gone", host="10.20.0.6", address="10.20.0.6")
    NetBoxLink.objects.create(olt=gone, device_id=6)
    NetBoxLink.objects.create(olt=ended, device_id=5)


def test_a_dry_run_prints_what_the_run_then_does_and_does_nothing(facho: Command, written_back: NetBox) -> None:
    make_mixed_world(written_back)
    before = olts()

    dry = facho("netbox", "sync", "--dry-run", "--disable")
    untouched = (olts(), trail(), NetBoxLink.objects.count(), list(written_back.changed))
    done = facho("netbox", "sync", "--disable")

    assert untouched == (before, [], 2, [])
    assert (dry.status, dry.out, dry.err) == (1, done.out, done.err)
    assert [line.split()[:3] for line in done.out.splitlines()] == [
        ["DEVICE", "NAME", "WHAT"],
        ["1", "new", "new"],
        ["2", "known", "linked"],
        ["2", "known", "changed"],
        ["2", "known", "written"],
        ["3", "nowhere", "error"],
        ["4", "planned", "left"],
        ["5", "ended", "disabled"],
        ["5", "ended", "written"],
        ["6", "gone", "gone"],
    ]
    assert sorted(olts()) == [
        ("ended", "10.20.0.5", 161, False),
        ("gone", "10.20.0.6", 161, True),
        ("known", "10.20.5.2", 161, True),
        ("new", "10.20.0.1", 161, True),
    ]
    assert CANARY not in dry.out + done.out + str(trail())


def test_a_new_device_gets_the_credentials_of_its_network(facho: Command, netbox: NetBox) -> None:
    netbox.add(1, "north", "10.20.0.1")
    netbox.add(2, "secure", "10.20.9.1")
    netbox.add(3, "six", "2001:db8::7")

    assert whats(facho) == [("north", "new"), ("secure", "new"), ("six", "new")]
    north, secure, six = Olt.objects.order_by("id")
    assert (north.community.reveal(), north.vendor, str(north.group)) == (CANARY, "huawei_smartax", "North")
    assert (secure.snmp_version, secure.v3_user, secure.v3_auth_key.reveal()) == ("3", "poller", f"{CANARY}-key")
    assert (secure.vendor, six.address) == ("", "2001:db8::7")
    assert Workflow.objects.filter(olt=north, nodes__isnull=False).exists()
    assert [entry[:3] for entry in trail()] == [(CONSOLE, ADDITION, name) for name in ("north", "secure", "six")]
    assert trail()[0][3].startswith("NetBox · Host: - → 10.20.0.1")


def test_a_second_run_has_nothing_to_do(facho: Command, netbox: NetBox) -> None:
    netbox.add(1, "north", "10.20.0.1")
    facho("netbox", "sync")
    entries = len(trail())

    again = facho("netbox", "sync")

    assert (again.status, again.out) == (0, "NetBox and Facho agree.\n")
    assert len(trail()) == entries


def test_an_olt_that_is_here_already_is_the_device_of_its_name_or_address(facho: Command, netbox: NetBox) -> None:
    """By a host name too: what counts is where it leads."""
    make_olt("by name", host="10.20.0.1", address="10.20.0.1")
    make_olt("Centro", host="olt.example", address="10.20.0.2")
    netbox.add(1, "by name", "10.20.0.1")
    netbox.add(2, "olt-centro-01", "10.20.0.2")

    found = rows(facho)

    assert [row[:3] for row in found] == [(1, "by name", "linked"), (2, "Centro", "linked")]
    assert found[1][3] == "is olt-centro-01 in NetBox"
    assert sorted(olt[:2] for olt in olts()) == [("Centro", "olt.example"), ("by name", "10.20.0.1")]
    assert all(olt.community for olt in Olt.objects.all())


def test_a_device_that_moved_and_has_another_name_is_still_the_same_olt(facho: Command, netbox: NetBox) -> None:
    netbox.add(1, "north", "10.20.0.1")
    facho("netbox", "sync")
    Olt.objects.update(port=1161, vendor="zte")
    netbox.devices[1]["name"] = "olt-north-01"
    netbox.move(1, "10.20.9.77")

    ((_device, name, what, details),) = rows(facho)

    assert (name, what) == ("north", "changed")
    assert "Host: 10.20.0.1 → 10.20.9.77" in details
    assert "Community: will be erased" in details
    olt = Olt.objects.get()
    assert (olt.name, olt.host, olt.port, olt.vendor, str(olt.group)) == ("north", "10.20.9.77", 1161, "zte", "North")
    assert (olt.snmp_version, olt.v3_auth_key.reveal(), bool(olt.community)) == ("3", f"{CANARY}-key", False)


def test_no_credential_follows_a_device_into_a_network_without_one(facho: Command, netbox: NetBox) -> None:
    """Who may change an address in NetBox does not get a community sent to it."""
    netbox.add(1, "north", "10.20.0.1")
    facho("netbox", "sync")
    netbox.move(1, "198.51.100.66")

    done = facho("netbox", "sync")

    assert done.status == 1
    assert "no network of FACHO_NETBOX_CREDENTIALS_FILE has 198.51.100.66" in done.out
    assert [olt[:2] for olt in olts()] == [("north", "10.20.0.1")]
    assert Olt.objects.get().community.reveal() == CANARY


@pytest.mark.parametrize(
    ("status", "added", "kept"),
    [
        ("active", "new", None),
        ("staged", "left_out", None),
        ("failed", "left_out", None),
        ("offline", "left_out", None),
        ("planned", "left_out", "gone"),
        ("inventory", "left_out", "gone"),
        ("decommissioning", "left_out", "gone"),
        ("", "left_out", "gone"),
    ],
)
def test_what_a_status_means(facho: Command, netbox: NetBox, status: str, added: str, kept: str | None) -> None:
    known = make_olt("known", host="10.20.0.2", address="10.20.0.2")
    NetBoxLink.objects.create(olt=known, device_id=2)
    netbox.add(1, "unknown", "10.20.0.1")
    netbox.add(2, "known", "10.20.0.2")
    for device_id in (1, 2):
        netbox.set_status(device_id, status)

    message = dict(whats(facho))

    assert message == {"unknown": added} | ({"known": kept} if kept else {})
    assert Olt.objects.filter(enabled=True).count() == (2 if added == "new" else 1)


def test_only_what_somebody_took_out_of_service_is_disabled_and_only_when_asked(facho: Command, netbox: NetBox) -> None:
    for number, name in enumerate(("decommissioning", "inventory", "deleted", "active"), start=1):
        netbox.add(number, name, f"10.20.0.{number}")
    facho("netbox", "sync")
    netbox.set_status(1, "decommissioning")
    netbox.set_status(2, "inventory")
    del netbox.devices[3]

    named_only = whats(facho)
    after_naming = Olt.objects.filter(enabled=True).count()
    disabling = whats(facho, "--disable")
    again = whats(facho, "--disable")

    assert named_only == [("decommissioning", "gone"), ("inventory", "gone"), ("deleted", "gone")]
    assert after_naming == 4
    assert disabling == [("decommissioning", "disabled"), ("inventory", "gone"), ("deleted", "gone")]
    assert again == [("inventory", "gone"), ("deleted", "gone")]
    assert list(Olt.objects.filter(enabled=False).values_list("name", flat=True)) == ["decommissioning"]
    assert trail()[-1] == (CONSOLE, CHANGE, "decommissioning", "NetBox · decommissioning · Disabled.")


def test_a_netbox_that_shows_nothing_changes_nothing(facho: Command, netbox: NetBox) -> None:
    """A token that lost its rights sees an empty list, and no error."""
    netbox.add(1, "north", "10.20.0.1")
    facho("netbox", "sync")
    netbox.devices.clear()

    done = facho("netbox", "sync", "--disable")

    assert (done.status, done.out) == (1, "")
    assert "NetBox shows no device with these roles: olt" in done.err
    assert Olt.objects.get().enabled


def test_a_wrong_device_is_named_and_keeps_no_other_away(facho: Command, netbox: NetBox) -> None:
    make_olt("by hand", host="10.20.0.9", address="10.20.0.9", port=1161)
    make_olt("by hand too", host="10.20.0.9", address="10.20.0.9")
    wrong = {
        10: (None, "10.20.0.10"),
        11: ("no address", None),
        12: ("\x1b[31mred‮", "10.20.0.12"),
        13: ("twice", "10.20.0.13"),
        14: ("twice", "10.20.0.14"),
        15: ("x" * 101, "10.20.0.15"),
        16: ("same device", "10.20.0.9"),
        17: ("many listen", "224.0.0.1"),
        18: (" spaces ", "10.20.0.18"),
        20: ("olt-1", "10.20.0.20"),
    }
    for device_id, (name, address) in wrong.items():
        netbox.add(device_id, name, address)
    netbox.add(1, "olt-1", "10.20.0.1")

    dry, done = facho("netbox", "sync", "--dry-run"), facho("netbox", "sync")

    assert (dry.status, done.status, dry.out) == (1, 1, done.out)
    assert "\x1b" not in done.out
    assert "‮" not in done.out
    found = {row[0]: row[2:] for row in rows(facho)}
    assert {device_id for device_id, row in found.items() if row[0] == "error"} == set(wrong) - {13}
    assert found[10][1] == "name is missing"
    assert "printed" in found[12][1]
    assert 'OLT "by hand too" already has address 10.20.0.9' in found[16][1]
    assert "OLT olt-1 is already device 1" in found[20][1]
    assert {olt[0] for olt in olts()} == {"by hand", "by hand too", "olt-1", "twice"}


def test_a_device_that_was_not_asked_for_becomes_no_olt(facho: Command, netbox: NetBox, settings: Settings) -> None:
    """NetBox passes over filters that it does not know, and since 4.3 it adds the roles below one."""
    settings.FACHO_NETBOX_SITES = ("centro",)
    netbox.fault = "no_filters"
    netbox.add(1, "olt-1", "10.20.0.1")
    netbox.add(2, "router-1", "10.20.0.2", role=named(7, "router"))
    netbox.add(3, "elsewhere", "10.20.0.3", site=named(7, "sur"))

    assert whats(facho) == [("olt-1", "new"), ("router-1", "left_out"), ("elsewhere", "left_out")]
    assert [olt[0] for olt in olts()] == ["olt-1"]


def test_without_a_file_new_devices_are_named_and_known_ones_are_found(
    facho: Command, netbox: NetBox, settings: Settings
) -> None:
    settings.FACHO_NETBOX_CREDENTIALS_FILE = None
    make_olt("known", host="10.20.0.2", address="10.20.0.2")
    netbox.add(1, "new", "10.20.0.1")
    netbox.add(2, "known", "10.20.0.2")

    assert whats(facho) == [("new", "error"), ("known", "linked")]
    assert [olt[0] for olt in olts()] == ["known"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "the header must have network"),
        (f"community\n{CANARY}\n", "the header must have network"),
        (f"network,community,name\n10.0.0.0/8,{CANARY},x\n", "the header must have network"),
        (f"network,community\n10.20.0.1/16,{CANARY}\n", "line 2: this is not a network"),
        (f"network,community\nsomewhere,{CANARY}\n", "line 2: this is not a network"),
        (f"network,community\n10.20.0.0/16,{CANARY},x\n", "line 2: 3 columns instead of 2"),
    ],
)
def test_a_file_of_credentials_that_is_wrong_is_named_without_them(
    facho: Command, netbox: NetBox, tmp_path: Path, text: str, words: str
) -> None:
    (tmp_path / "credentials.csv").write_text(text)
    netbox.add(1, "new", "10.20.0.1")

    done = facho("netbox", "sync")

    assert (done.status, done.out, olts(), netbox.asked) == (1, "", [], [])
    assert words in done.err
    assert CANARY not in done.err


def test_a_credential_that_cannot_be_one_is_named_for_its_devices(
    facho: Command, netbox: NetBox, tmp_path: Path
) -> None:
    (tmp_path / "credentials.csv").write_text("network,version,vendor,community\n10.0.0.0/8,4,nobody,x\n")
    netbox.add(1, "new", "10.20.0.1")

    ((*_device, details),) = rows(facho)

    assert 'SNMP version "4"' in details
    assert 'vendor "nobody"' in details


def test_a_device_that_was_replaced_is_not_taken_for_the_one_in_its_place(facho: Command, netbox: NetBox) -> None:
    make_olt("centro", host="10.20.0.1", address="10.20.0.1")
    netbox.add(1, "centro", "10.20.0.1")
    netbox.set_status(1, "decommissioning")
    netbox.add(2, "centro-2", "10.20.0.1")

    assert whats(facho, "--disable") == [("centro", "left_out"), ("centro", "linked")]
    assert NetBoxLink.objects.get().device_id == 2
    assert Olt.objects.get().enabled


def test_what_facho_knows_is_written_where_it_differs(facho: Command, written_back: NetBox) -> None:
    brand = Brand.objects.create(name="Huawei")
    olt = make_olt(
        "north",
        host="10.20.0.1",
        address="10.20.0.1",
        model=OltModel.objects.create(brand=brand, name="MA5800-X7"),
        reachability=Reachability.UP,
        sys_descr="Huawei Integrated Access Software",
        last_answer_at=ANSWERED_AT,
    )
    for number, state in enumerate(("online", "online", "offline", "unknown")):
        make_onu(olt, (0, 1, 0, number), run_state=state)
    make_olt("still", host="10.20.0.2", address="10.20.0.2")
    written_back.add(1, "north", "10.20.0.1")
    written_back.add(2, "still", "10.20.0.2")

    facho("netbox", "sync")
    again = facho("netbox", "sync")
    Olt.objects.filter(pk=olt.pk).update(reachability=Reachability.DOWN, last_answer_at=ANSWERED_AT)
    facho("netbox", "sync")

    first, second = written_back.changed
    assert first[0] == {
        "id": 1,
        "custom_fields": {
            "facho_reachable": True,
            "facho_model": "Huawei MA5800-X7",
            "facho_system": "Huawei Integrated Access Software",
            "facho_onus_online": 2,
            "facho_onus_total": 4,
            "facho_last_answer": "2026-10-01T12:30:05+00:00",
            "facho_link": f"https://facho.example.net/olts/{olt.pk}/",
        },
    }
    assert first[1]["custom_fields"].keys() == {"facho_onus_online", "facho_onus_total", "facho_link"}
    assert again.out == "NetBox and Facho agree.\n"
    assert second == [{"id": 1, "custom_fields": {"facho_reachable": False, "facho_onus_online": 0}}]


def test_many_devices_are_written_in_requests_of_25(facho: Command, written_back: NetBox) -> None:
    for number in range(1, 61):
        make_olt(f"olt-{number}", host=f"10.20.0.{number}", address=f"10.20.0.{number}")
        written_back.add(number, f"olt-{number}", f"10.20.0.{number}")

    facho("netbox", "sync")

    assert [len(batch) for batch in written_back.changed] == [25, 25, 10]


def test_a_custom_field_that_netbox_lacks_is_named_before_anything_is_done(
    facho: Command, written_back: NetBox
) -> None:
    """NetBox before 4.5.8 would keep it, where nobody sees it."""
    make_mixed_world(written_back)
    del written_back.custom_fields["facho_model"], written_back.custom_fields["facho_link"]

    done = facho("netbox", "sync")

    assert (done.status, trail(), written_back.changed) == (1, [], [])
    assert "NetBox has no custom field facho_link, facho_model for devices" in done.err


def test_a_custom_field_of_another_type_is_said_and_the_olts_are_kept(facho: Command, written_back: NetBox) -> None:
    make_mixed_world(written_back)
    written_back.custom_fields["facho_onus_total"] = "text"

    done = facho("netbox", "sync")

    assert done.status == 1
    assert "NetBox rejects the request (400)" in done.err
    assert Olt.objects.filter(name="new").exists()


def test_nothing_is_written_unless_fields_are_named(facho: Command, netbox: NetBox) -> None:
    netbox.custom_fields = dict(FIELDS.values())
    make_mixed_world(netbox)

    facho("netbox", "sync")

    assert {method for method, _path in netbox.asked} == {"GET"}


@pytest.mark.parametrize("fault", ["forbidden", "500", "html", "redirect"])
def test_a_netbox_that_fails_changes_nothing(facho: Command, netbox: NetBox, fault: str) -> None:
    make_mixed_world(netbox)
    netbox.fault, netbox.elsewhere, before = fault, "http://127.0.0.1:1", olts()

    done = facho("netbox", "sync", "--disable")

    assert (done.status, done.out, olts()) == (1, "", before)
    assert done.err.startswith("facho: ")
    assert TOKEN not in done.err


def test_what_changed_since_the_plan_is_not_overwritten(
    facho: Command, netbox: NetBox, monkeypatch: pytest.MonkeyPatch
) -> None:
    netbox.add(1, "new", "10.20.0.1")

    def plan_late(*, disables: bool) -> Any:
        plan = plan_sync(disables=disables)
        make_olt("new", host="10.20.0.77", address="10.20.0.77")
        return plan

    monkeypatch.setattr("facho.core.cli.neighbours.plan_sync", plan_late)
    done = facho("netbox", "sync")

    assert done.status == 1
    assert "changed meanwhile" in done.err
    assert [olt[:2] for olt in olts()] == [("new", "10.20.0.77")]


def test_a_device_that_was_made_anew_in_netbox_is_the_same_olt(facho: Command, netbox: NetBox) -> None:
    netbox.add(1, "north", "10.20.0.1")
    facho("netbox", "sync")
    del netbox.devices[1]
    netbox.add(99, "north", "10.20.0.1")

    first, second = whats(facho), whats(facho)

    assert first == [("north", "gone"), ("north", "linked")]
    assert (second, NetBoxLink.objects.get().device_id) == ([], 99)


def test_without_an_address_the_command_says_what_to_set(facho: Command) -> None:
    done = facho("netbox", "sync")

    assert done.status == BAD_CONFIGURATION
    assert "FACHO_NETBOX_URL" in done.err
