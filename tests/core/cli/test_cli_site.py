"""Commands ask from their own machine: they say so of an OLT of a site, and its silence here says nothing of it."""

import pytest
from cli_runner import Command
from pytest_django import Settings

from facho.core.env import Mode
from facho.hosts.models import Olt, Reachability
from facho.polling.snmp.target import Patience
from factories import make_olt

pytestmark = pytest.mark.django_db(transaction=True)

CLOSED_PORT = 9


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("facho.snmp_get.identity.PATIENCE", Patience(timeout_s=0.05, tries=1))


@pytest.mark.parametrize(
    ("mode", "says_so", "reachability"),
    [
        pytest.param(Mode.DISTRIBUTED, True, Reachability.UNKNOWN, marks=pytest.mark.postgresql),
        (Mode.EMBEDDED, False, Reachability.DOWN),
    ],
)
def test_an_olt_of_a_site_that_a_command_does_not_reach_is_not_down(
    facho: Command, settings: Settings, mode: Mode, says_so: bool, reachability: Reachability
) -> None:
    settings.FACHO_MODE, settings.REDIS_URL = mode, "redis://127.0.0.1:1/0"
    olt = make_olt(port=CLOSED_PORT)
    Olt.objects.update(poller_group="norte")

    outcome = facho("olt", "probe", olt.name)

    assert outcome.status == 1
    assert ("poller group norte: this machine asks it directly" in outcome.err) is says_so
    assert Olt.objects.get().reachability == reachability
