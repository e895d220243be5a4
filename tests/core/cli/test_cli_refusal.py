"""`facho olt probe` of a device that is no OLT, which fails, and of one that hides its ONUs, which is warned of."""

from dataclasses import replace

import pytest
from cli_runner import Command

from facho.polling.domain.execution_state import ProbeFinding
from facho.polling.vendors.decoders import parse_oid
from facho.snmp_get.identity import identify

pytestmark = pytest.mark.django_db


def test_a_look_alike_is_reported_and_the_command_fails(facho: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    report = identify(b"sw-1", b"DM4770 32CX DmOS version 7.2.0", parse_oid("1.3.6.1.4.1.3709.1.2.137"))
    monkeypatch.setattr("facho.core.cli.olt.probe_olt", lambda _olt_id: report)
    facho("olt", "add", "sw-1", "127.0.0.1", "--community-stdin", stdin=b"public")

    done = facho("olt", "probe", "sw-1")

    assert done.status == 1
    assert done.err.startswith("facho: OLT sw-1 is not polled. This Datacom device is not an OLT of the DM46 series;")
    assert done.err.count("\n") == 1


def test_an_olt_that_hides_its_onus_is_probed_with_a_warning(facho: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    report = identify(b"olt-1", b"Huawei Integrated Access Software", parse_oid("1.3.6.1.4.1.2011.2.248"))
    report = replace(report, finding=ProbeFinding.ONUS_HIDDEN)
    monkeypatch.setattr("facho.core.cli.olt.probe_olt", lambda _olt_id: report)
    facho("olt", "add", "olt-1", "127.0.0.1", "--community-stdin", stdin=b"public")

    done = facho("olt", "probe", "olt-1")

    assert done.status == 0
    assert "OLT olt-1: It has ONUs, but does not list them. The PON ports of 127.0.0.1 count ONUs" in done.err
    assert "- On the OLT, give this community or user a view" in done.err
