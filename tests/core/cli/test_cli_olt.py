"""`facho olt`: what an operator types, and what comes of it."""

import json
from pathlib import Path

import pytest
from cli_runner import Command
from django.contrib.admin.models import LogEntry

from facho.hosts.models import Olt, SnmpVersionChoice
from facho.snmp_jobs.models import WorkflowNode
from factories import give_secrets

pytestmark = pytest.mark.django_db

HEADER = "name,host,port,vendor,version,community\n"


def add(facho: Command, name: str, host: str, *options: str) -> None:
    assert facho("olt", "add", name, host, "--community-stdin", *options, stdin=b"public\n").status == 0


def write_csv(folder: Path, *rows: str, header: str = HEADER) -> str:
    file = folder / "olts.csv"
    file.write_text(header + "".join(f"{row}\n" for row in rows), encoding="utf-8")
    return str(file)


def test_an_added_olt_is_listed_as_json(facho: Command) -> None:
    add(facho, "centro", "127.0.0.1", "--port", "1161")

    (row,) = json.loads(facho("olt", "list", "--json").out)

    assert (row["name"], row["address"], row["port"], row["vendor"]) == ("centro", "127.0.0.1", 1161, "auto")


def test_a_list_is_a_table_for_people(facho: Command) -> None:
    add(facho, "centro", "127.0.0.1")

    heading, row = facho("olt", "list").out.splitlines()

    assert heading.split()[:3] == ["NAME", "HOST", "ADDRESS"]
    assert row.split()[:4] == ["centro", "127.0.0.1", "127.0.0.1", "161"]


def test_an_olt_of_a_known_vendor_gets_its_jobs(facho: Command) -> None:
    add(facho, "centro", "127.0.0.1", "--vendor", "huawei_smartax")

    assert WorkflowNode.objects.filter(workflow__olt__name="centro", is_chain_node=False).exists()


def test_an_olt_to_be_recognised_has_no_jobs_yet(facho: Command) -> None:
    add(facho, "centro", "127.0.0.1", "--vendor", "auto")

    assert Olt.objects.get().vendor == ""
    assert not WorkflowNode.objects.exists()


def test_jobs_are_left_out_on_demand(facho: Command) -> None:
    add(facho, "centro", "127.0.0.1", "--vendor", "huawei_smartax", "--no-jobs")

    assert not WorkflowNode.objects.exists()


def test_snmpv3_keys_come_from_two_lines_of_standard_input(facho: Command) -> None:
    options = ("--version", "3", "--v3-user", "noc", "--auth-protocol", "sha", "--priv-protocol", "aes", "--keys-stdin")

    done = facho("olt", "add", "norte", "127.0.0.1", *options, stdin=b"auth-key-1\npriv-key-2\n")

    olt = Olt.objects.get()
    assert (done.status, olt.snmp_version, olt.v3_auth_protocol, olt.v3_priv_protocol) == (0, "3", "SHA", "AES")
    assert (olt.v3_auth_key.reveal(), olt.v3_priv_key.reveal()) == ("auth-key-1", "priv-key-2")


def test_a_missing_community_is_asked_for_in_one_line(facho: Command) -> None:
    done = facho("olt", "add", "centro", "127.0.0.1")

    assert (done.status, done.out) == (1, "")
    assert done.err == ("facho: The community is needed: give it with --community-stdin, or run this in a terminal.\n")


def test_missing_snmpv3_keys_are_asked_for_in_one_line(facho: Command) -> None:
    done = facho("olt", "add", "norte", "127.0.0.1", "--version", "3", "--v3-user", "noc", "--auth-protocol", "SHA")

    assert done.status == 1
    assert "--keys-stdin" in done.err


def test_a_community_that_is_not_text_is_refused_without_showing_it(facho: Command) -> None:
    done = facho("olt", "add", "centro", "127.0.0.1", "--community-stdin", stdin=b"\xffsecret\n")

    assert (done.status, done.err) == (1, "facho: Standard input is not UTF-8 text.\n")


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("centro", "127.0.0.1", "--vendor", "acme"), 'Vendor "acme" is unknown; known are: auto, '),
        (("centro", "no-such-host.invalid"), 'Host "no-such-host.invalid" does not resolve to an address.'),
        (("", "127.0.0.1"), "Name is missing."),
        (("centro\x1b[31m", "127.0.0.1"), "Name contains a character that cannot be printed."),
        (("centro", "0.0.0.0"), 'Host "0.0.0.0" does not resolve to an address.'),  # noqa: S104 - refused
    ],
)
def test_a_bad_olt_is_refused_with_the_reason(facho: Command, arguments: tuple[str, ...], reason: str) -> None:
    done = facho("olt", "add", *arguments, "--community-stdin", stdin=b"public\n")

    assert done.status == 1
    assert done.err.startswith(f"facho: {reason}")
    assert not Olt.objects.exists()


@pytest.mark.parametrize("port", ["abc", "0", "65536", "-1", "٣"])
def test_a_port_that_is_none_is_wrong_use(facho: Command, port: str) -> None:
    done = facho("olt", "add", "centro", "127.0.0.1", f"--port={port}", "--community-stdin", stdin=b"public\n")

    assert done.status == 2
    assert "65535" in done.err


def test_a_second_olt_of_the_same_name_is_refused(facho: Command) -> None:
    add(facho, "centro", "127.0.0.1")

    done = facho("olt", "add", "centro", "127.0.0.2", "--community-stdin", stdin=b"public\n")

    assert (done.status, done.err) == (1, 'facho: There is already an OLT named "centro".\n')
    assert Olt.objects.get().address == "127.0.0.1"


def test_a_second_olt_for_the_same_device_is_refused(facho: Command) -> None:
    add(facho, "centro", "127.0.0.1")

    done = facho("olt", "add", "norte", "::ffff:127.0.0.1", "--community-stdin", stdin=b"public\n")

    assert (done.status, done.err) == (1, 'facho: OLT "centro" already has address 127.0.0.1 port 161.\n')


def test_a_file_adds_new_and_updates_known_olts(facho: Command, tmp_path: Path) -> None:
    add(facho, "centro", "127.0.0.1")

    done = facho(
        "olt", "import", write_csv(tmp_path, "centro,127.0.0.1,,zte_c300,,", "norte,127.0.0.2,,huawei,2c,other")
    )

    assert (done.status, done.out) == (0, "1 OLTs added, 1 updated\n")
    centro, norte = Olt.objects.order_by("name")
    assert (centro.vendor, centro.community.reveal()) == ("zte_c300_c320", "public")
    assert (norte.vendor, norte.community.reveal()) == ("huawei_smartax", "other")


def test_one_bad_row_is_named_and_nothing_is_imported(facho: Command, tmp_path: Path) -> None:
    file = write_csv(tmp_path, "centro,127.0.0.1,,,,public", "norte,127.0.0.2,abc,,,public")

    done = facho("olt", "import", file)

    assert done.status == 1
    assert done.err.splitlines() == [
        f'facho: {file} line 3: port "abc" is not a number from 1 to 65535',
        "facho: Nothing was imported: correct the file and import it again.",
    ]
    assert not Olt.objects.exists()


def test_a_dry_run_prints_what_would_change_and_writes_nothing(facho: Command, tmp_path: Path) -> None:
    add(facho, "centro", "127.0.0.1")
    file = write_csv(tmp_path, "centro,127.0.0.1,,,1,", "norte,127.0.0.2,,,,canary-7f3a")

    table = facho("olt", "import", "--dry-run", file)
    rows = json.loads(facho("olt", "import", "--dry-run", "--json", file).out)

    assert table.status == 0
    assert table.out.splitlines()[1].split(maxsplit=3) == [
        "2",
        "centro",
        "changed",
        "SNMP version: 2c → 1; Community: kept",
    ]
    assert [(row["line"], row["name"], row["what"]) for row in rows] == [(2, "centro", "changed"), (3, "norte", "new")]
    assert "canary" not in table.out
    assert Olt.objects.get().snmp_version == "2c"


def test_a_file_that_moves_an_olt_gives_its_secrets_anew(facho: Command, tmp_path: Path) -> None:
    add(facho, "centro", "127.0.0.1")
    give_secrets(v3_priv_key="canary-of-before")

    refused = facho("olt", "import", write_csv(tmp_path, "centro,127.0.0.9,,,,"))
    done = facho("olt", "import", write_csv(tmp_path, "centro,127.0.0.9,,,,other"))

    assert "line 2: community: enter it again" in refused.err
    assert done.status == 0
    olt = Olt.objects.get()
    assert (olt.address, olt.community.reveal(), olt.v3_priv_key.reveal()) == ("127.0.0.9", "other", "")
    assert LogEntry.objects.filter(change_message__endswith="Privacy key: erased, since host or port changed").exists()


def test_a_dry_run_of_a_bad_file_fails_and_names_the_rows(facho: Command, tmp_path: Path) -> None:
    done = facho("olt", "import", "--dry-run", write_csv(tmp_path, "centro,127.0.0.1,abc,,,public"))

    assert done.status == 1
    assert 'error  port "abc" is not a number from 1 to 65535' in done.out


@pytest.mark.parametrize("name", ["missing.csv", "."])
def test_a_file_that_cannot_be_read_is_named(facho: Command, tmp_path: Path, name: str) -> None:
    done = facho("olt", "import", str(tmp_path / name))

    assert done.status == 1
    assert done.err.startswith(f"facho: {tmp_path / name}: ")
    assert done.err.count("\n") == 1


def test_an_export_can_be_imported_again(facho: Command, tmp_path: Path) -> None:
    add(facho, "=1+1", "127.0.0.1", "--vendor", "huawei")
    file = tmp_path / "export.csv"

    exported = facho("olt", "export", str(file))
    imported = facho("olt", "import", str(file))

    assert file.read_text() == f"{HEADER}'=1+1,127.0.0.1,161,huawei_smartax,2c,\n"
    assert (exported.status, imported.out) == (0, "0 OLTs added, 1 updated\n")
    assert Olt.objects.get().name == "=1+1"


def test_an_export_goes_to_standard_output_unless_reported_otherwise(facho: Command) -> None:
    assert facho("olt", "export").out == HEADER
    assert facho("olt", "export", "-").out == HEADER


def test_an_export_that_cannot_be_written_says_so(facho: Command, tmp_path: Path) -> None:
    done = facho("olt", "export", str(tmp_path / "no" / "such" / "folder.csv"))

    assert (done.status, done.err) == (1, f"facho: {tmp_path}/no/such/folder.csv: No such file or directory\n")


def test_an_export_of_snmpv3_has_its_columns_and_no_keys(facho: Command) -> None:
    Olt.objects.create(
        name="norte",
        host="127.0.0.1",
        address="127.0.0.1",
        snmp_version=SnmpVersionChoice.V3,
        v3_user="noc",
        v3_auth_protocol="SHA",
        v3_auth_key="auth-key-1",
    )

    header, row = facho("olt", "export").out.splitlines()

    assert header.endswith("community,v3_user,v3_auth_protocol,v3_auth_key,v3_priv_protocol,v3_priv_key")
    assert row == "norte,127.0.0.1,161,auto,3,,noc,SHA,,,"


def test_text_of_a_device_cannot_steer_the_terminal(facho: Command) -> None:
    Olt.objects.create(name="centro", host="evil\x1b]0;title\x07", address="127.0.0.1", community="public")

    assert "\x1b" not in facho("olt", "list").out
