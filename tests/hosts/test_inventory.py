"""The inventory: all of what was given is saved, or nothing, and nothing stored is lost."""

import pytest
from django.db import connection

from facho.hosts import inventory
from facho.hosts.inventory import InventoryError, Saved, add_olt, export_entries, import_olts, stored_olts
from facho.hosts.models import Olt, Reachability
from facho.hosts.olt_entry import OltEntry, find_vendor
from facho.infrastructure.secrets import ForeignSecret, Secret

pytestmark = pytest.mark.django_db

VENDORS = ("huawei_smartax", "zte_c300_c320", "zte_c600_titan")


@pytest.fixture(autouse=True)
def known_vendors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inventory, "load_definitions", lambda: dict.fromkeys(VENDORS))


def entry(name: str = "centro", host: str = "192.0.2.1", **more: str) -> OltEntry:
    secrets = {key: Secret(more.pop(key)) for key in ("community", "v3_auth_key", "v3_priv_key") if key in more}
    line = int(more.pop("line", "0")) or None
    return OltEntry(name, host, line=line, **{"community": Secret("public"), **secrets}, **more)  # type: ignore[arg-type]


def v3_entry(**more: str) -> OltEntry:
    return entry(version="3", community="", **more)


def save(*entries: OltEntry) -> Saved:
    return import_olts(entries)


def reasons(*entries: OltEntry) -> list[str]:
    with pytest.raises(InventoryError) as refused:
        save(*entries)
    return [problem.reason for problem in refused.value.problems]


def test_a_new_olt_takes_the_defaults() -> None:
    save(entry())

    olt = Olt.objects.get()
    assert (olt.address, olt.port, olt.vendor, olt.snmp_version) == ("192.0.2.1", 161, "", "2c")
    assert olt.enabled


def test_what_is_empty_keeps_what_is_stored() -> None:
    save(entry(port="1161", vendor="huawei_smartax", version="1"))

    saved = save(entry(community=""))

    olt = Olt.objects.get()
    assert saved == Saved(added=(), updated=("centro",))
    assert (olt.address, olt.port, olt.vendor, olt.snmp_version) == ("192.0.2.1", 1161, "huawei_smartax", "1")
    assert olt.community == Secret("public")


@pytest.mark.parametrize("place", [{"host": "192.0.2.2"}, {"port": "1162"}])
def test_a_stored_secret_is_not_sent_to_another_place(place: dict[str, str]) -> None:
    """Whoever may say where an OLT is asked, but not read its community, would read it there."""
    save(entry(port="1161"))

    assert reasons(entry(**{"port": "1161", "community": "", **place})) == [
        "community: enter it again; the stored one is not sent to another address or port"
    ]
    assert (Olt.objects.get().host, Olt.objects.get().port) == ("192.0.2.1", 1161)


def test_another_place_erases_the_secrets_of_every_version() -> None:
    """2c, then v3, then elsewhere, then 2c again: the community was sent in clear to wherever that was."""
    keys = {"v3_user": "noc", "v3_auth_protocol": "SHA", "v3_auth_key": "auth-canary-7f3a"}
    save(entry(community="canary-7f3a"))
    save(v3_entry(**keys))

    saved = save(v3_entry(host="192.0.2.2", **keys))

    olt = Olt.objects.get()
    assert "Community: erased, since host or port changed" in saved.audit_words
    assert (olt.community, olt.v3_auth_key) == (Secret(""), Secret("auth-canary-7f3a"))
    assert reasons(entry(host="192.0.2.2", version="2c", community="")) == ["community is missing"]


def test_another_place_forgets_the_user_too() -> None:
    save(v3_entry(v3_user="noc"))

    assert reasons(v3_entry(host="192.0.2.2")) == ["SNMPv3 needs a user"]
    assert "SNMPv3 user: noc → -" in save(entry(host="192.0.2.2", version="2c")).audit_words
    assert Olt.objects.get().v3_user == ""


def test_a_name_takes_its_secrets_along_to_its_new_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inventory, "resolve_all", lambda hosts: dict.fromkeys(hosts, "192.0.2.1"))
    save(entry(host="olt.example"))
    monkeypatch.setattr(inventory, "resolve_all", lambda hosts: dict.fromkeys(hosts, "192.0.2.2"))

    saved = save(entry(host="olt.example", community=""))

    olt = Olt.objects.get()
    assert ("erased" in saved.audit_words, olt.address) == (False, "192.0.2.2")
    assert olt.community.reveal_for(str(olt.place)) == "public"


def test_a_secret_is_not_taken_along_from_a_place_that_it_was_not_given_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody edited the row's host, and then it was saved."""
    save(entry(host="192.0.2.1"))
    Olt.objects.update(host="evil.example")
    monkeypatch.setattr(inventory, "resolve_all", lambda hosts: dict.fromkeys(hosts, "192.0.2.66"))

    save(entry(host="evil.example", community=""))

    olt = Olt.objects.get()
    with pytest.raises(ForeignSecret):
        olt.community.reveal_for(str(olt.place))


def test_a_row_that_is_saved_elsewhere_by_whoever_forgot_loses_its_secrets() -> None:
    save(entry())
    olt = Olt.objects.get()

    olt.address = "192.0.2.2"
    olt.save()

    assert Olt.objects.get().community == Secret("")


def test_a_secret_cannot_be_written_without_its_place() -> None:
    save(entry())

    with pytest.raises(TypeError, match="stored for a place"):
        Olt.objects.update(community=Secret("other"))


def test_auto_lets_a_known_olt_be_recognised_again() -> None:
    save(entry(vendor="huawei_smartax"))

    save(entry(vendor="auto"))

    assert Olt.objects.get().vendor == ""


def test_a_new_community_replaces_the_old_one() -> None:
    save(entry())

    save(entry(community="other"))

    assert Olt.objects.get().community == Secret("other")


def test_an_update_leaves_alone_what_others_write() -> None:
    save(entry())
    before = stored_olts().get()
    Olt.objects.update(reachability=Reachability.UP, enabled=False, sys_name="olt-1")

    save(entry(host="192.0.2.2"))

    olt = Olt.objects.get()
    assert before.reachability == Reachability.UNKNOWN
    assert (olt.reachability, olt.enabled, olt.sys_name) == (Reachability.UP, False, "olt-1")


def test_secrets_are_ciphertext_in_the_table() -> None:
    save(entry(community="canary-7f3a"))

    with connection.cursor() as cursor:
        cursor.execute("SELECT community FROM hosts_olt")
        (raw,) = cursor.fetchone()

    assert raw
    assert "canary" not in raw


def test_an_olt_speaks_snmpv3_with_all_its_parts() -> None:
    keys = {"v3_auth_key": "auth-key-1", "v3_priv_key": "priv-key-2"}

    save(v3_entry(v3_user="noc", v3_auth_protocol="sha", v3_priv_protocol="aes", **keys))

    olt = Olt.objects.get()
    assert (olt.v3_user, olt.v3_auth_protocol, olt.v3_priv_protocol) == ("noc", "SHA", "AES")
    assert (olt.v3_auth_key, olt.v3_priv_key) == (Secret("auth-key-1"), Secret("priv-key-2"))


def test_none_takes_a_protocol_away_and_empty_does_not() -> None:
    keys = {"v3_auth_key": "auth-key-1", "v3_priv_key": "priv-key-2"}
    save(v3_entry(v3_user="noc", v3_auth_protocol="SHA", v3_priv_protocol="AES", **keys))

    save(v3_entry(v3_priv_protocol="none"))

    olt = Olt.objects.get()
    assert (olt.v3_auth_protocol, olt.v3_priv_protocol) == ("SHA", "")


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (entry(name=""), "name is missing"),
        (entry(name="x" * 101), "name is longer than 100 characters"),
        (entry(name="a\tb"), "name contains a character that cannot be printed"),
        (entry(name=" a"), "name begins or ends with a space"),
        (entry(host=""), "host is missing"),
        (entry(host="no-such-host.invalid"), 'host "no-such-host.invalid" does not resolve to an address'),
        (entry(port="abc"), 'port "abc" is not a number from 1 to 65535'),
        (entry(port="0"), 'port "0" is not a number from 1 to 65535'),
        (entry(port="65536"), 'port "65536" is not a number from 1 to 65535'),
        (entry(port="²"), 'port "²" is not a number from 1 to 65535'),
        (entry(version="2"), 'SNMP version "2" is not one of 1, 2c, 3'),
        (entry(vendor="zte"), f'vendor "zte" is unknown; known are: auto, {", ".join(VENDORS)}'),
        (entry(community=""), "community is missing"),
        (entry(community="a" * 256), "community is longer than 255 bytes"),
        (entry(community="a\x00b"), "community contains a character that cannot be printed"),
        (v3_entry(), "SNMPv3 needs a user"),
        (v3_entry(v3_user="noc", v3_auth_protocol="SHA"), "authentication key is missing"),
        (
            v3_entry(v3_user="noc", v3_auth_protocol="SHA", v3_auth_key="12345678", v3_priv_protocol="AES"),
            "privacy key is missing",
        ),
        (
            v3_entry(v3_user="noc", v3_priv_protocol="AES", v3_priv_key="12345678"),
            "privacy needs an authentication protocol",
        ),
        (
            v3_entry(v3_user="noc", v3_auth_protocol="SHA", v3_auth_key="short"),
            "v3_auth_key is shorter than 8 characters",
        ),
        (
            v3_entry(v3_user="noc", v3_auth_protocol="ROT13"),
            "authentication protocol is not one of MD5, SHA, SHA-224, SHA-256, SHA-384, SHA-512, none",
        ),
        (
            v3_entry(v3_user="noc", v3_priv_protocol="ROT13"),
            "privacy protocol is not one of DES, AES, AES-192, AES-256, none",
        ),
    ],
)
def test_a_bad_entry_is_refused_with_its_reason(bad: OltEntry, reason: str) -> None:
    assert reason in reasons(bad)
    assert not Olt.objects.exists()


def test_every_problem_of_every_entry_is_reported_in_the_order_of_lines() -> None:
    good = entry(line="2")
    bad = entry("norte", "192.0.2.2", port="x", community="", line="4")
    worse = entry("sur", "no-such-host.invalid", vendor="acme", line="3")

    with pytest.raises(InventoryError) as refused:
        save(good, bad, worse)

    assert [problem.line for problem in refused.value.problems] == [3, 3, 4, 4]
    assert not Olt.objects.exists()


def test_one_bad_entry_leaves_known_olts_as_they_were() -> None:
    save(entry())

    assert reasons(entry(host="192.0.2.9"), entry("norte", "192.0.2.2", port="x"))

    assert Olt.objects.get().address == "192.0.2.1"


def test_a_name_may_appear_once() -> None:
    assert reasons(entry(), entry(host="192.0.2.2")) == ['name "centro" appears twice']


def test_two_entries_may_not_be_one_device() -> None:
    assert reasons(entry("uno", "192.0.2.1"), entry("dos", "::ffff:192.0.2.1")) == [
        'OLT "uno" already has address 192.0.2.1 port 161'
    ]


def test_an_entry_may_not_take_the_device_of_another_olt() -> None:
    save(entry("uno"))

    assert reasons(entry("dos", "192.0.2.1")) == ['OLT "uno" already has address 192.0.2.1 port 161']


def test_one_address_may_hold_olts_on_several_ports() -> None:
    assert save(entry("uno", port="1161"), entry("dos", port="1162")).added == ("uno", "dos")


def test_no_reason_repeats_a_secret() -> None:
    reported = reasons(entry(community="canary-7f3a\x00"), v3_entry(name="norte", v3_auth_key="7f3a"))

    assert not any("7f3a" in reason for reason in reported)


def test_adding_refuses_a_known_name() -> None:
    add_olt(entry())

    with pytest.raises(InventoryError, match="is already an OLT"):
        add_olt(entry(host="192.0.2.2"))


def test_who_waits_for_a_save_hears_of_new_olts_and_changed_vendors() -> None:
    heard: list[str] = []

    def hear(olt: Olt) -> None:
        heard.append(f"{olt.name} {olt.vendor}")

    import_olts([entry()], after_save=hear)
    import_olts([entry()], after_save=hear)
    import_olts([entry(vendor="huawei")], after_save=hear)

    assert heard == ["centro ", "centro huawei_smartax"]


def test_a_failure_after_the_save_undoes_it() -> None:
    def fail(olt: Olt) -> None:
        raise LookupError(olt.name)

    with pytest.raises(LookupError):
        import_olts([entry()], after_save=fail)

    assert not Olt.objects.exists()


def test_an_export_gives_entries_without_secrets() -> None:
    save(entry(community="canary-7f3a"))

    (exported,) = export_entries()

    assert exported == OltEntry("centro", "192.0.2.1", "161", "auto", "2c")


def test_lists_and_exports_do_not_need_the_keys() -> None:
    save(entry())
    Olt.objects.filter(name="centro").update(community="")
    with connection.cursor() as cursor:
        cursor.execute("UPDATE hosts_olt SET community = 'written with a key that was lost'")

    assert [olt.name for olt in stored_olts()] == ["centro"]
    assert save(entry(community="entered again")).updated == ("centro",)
    assert Olt.objects.get().community == Secret("entered again")


def test_a_vendor_may_be_named_by_its_unique_beginning() -> None:
    assert find_vendor("huawei", ("huawei_smartax_epon", *VENDORS)) == "huawei_smartax"
    assert find_vendor("Huawei", VENDORS) == "huawei_smartax"
    assert find_vendor("zte_c6", VENDORS) == "zte_c600_titan"
    assert find_vendor("zte", VENDORS) is None
    assert find_vendor("AUTO", VENDORS) == ""


def test_the_real_definitions_are_the_known_vendors() -> None:
    import_olts([entry(vendor="huawei_smartax")])

    assert Olt.objects.get().vendor == "huawei_smartax"


def test_an_import_costs_a_constant_number_of_reads(django_assert_max_num_queries: object) -> None:
    entries = [entry(f"olt-{number}", f"192.0.2.{number}") for number in range(1, 51)]

    with django_assert_max_num_queries(55):  # type: ignore[operator]
        save(*entries)
