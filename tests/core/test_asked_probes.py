"""Which OLTs are probed because their time has come, also where suspended nodes wait for a person."""

from datetime import timedelta
from typing import Any

import pytest

from facho.hosts.models import Olt
from facho.hosts.store import ask_for_probe
from facho.snmp_jobs.models import WorkflowNode
from facho.zabbix_pollers.store import load_asked_for
from factories import NOW, make_node, make_olt

pytestmark = pytest.mark.django_db


@pytest.fixture
def olts() -> tuple[Olt, Olt]:
    """An OLT that somebody wants to have tested, and one whose nodes are suspended; both are due."""
    new, silent = make_olt(vendor=""), make_node().workflow.olt
    WorkflowNode.objects.update(suspended_at=NOW, suspend_reason="timeout")
    ask_for_probe(new.pk, NOW)
    Olt.objects.filter(pk=silent.pk).update(next_probe_at=NOW - timedelta(minutes=1))
    make_olt()
    return new, silent


def test_both_are_probed_where_probes_bring_nodes_back(olts: tuple[Olt, Olt]) -> None:
    assert load_asked_for(NOW) == [olt.pk for olt in olts]


def test_only_the_new_one_is_probed_where_a_person_brings_them_back(olts: tuple[Olt, Olt], settings: Any) -> None:
    settings.FACHO_SUSPENDED_RETURN = "manual"

    assert load_asked_for(NOW) == [olts[0].pk]
