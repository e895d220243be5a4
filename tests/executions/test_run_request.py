"""What a node's job reads is what its collector is asked for."""

import pytest

from facho.executions import store
from facho.executions.models import Origin
from facho.executions.store import ClaimRequest
from facho.polling.domain.collection import FreeOid
from facho.snmp_jobs.models import SnmpJobOid
from factories import NOW, make_job, make_node

pytestmark = pytest.mark.django_db


def test_a_run_asks_for_the_columns_and_the_oids_of_its_job() -> None:
    job = make_job(columns=("onu.description", "onu.distance"))
    SnmpJobOid.objects.create(job=job, position=7, oid="1.3.6.1.2.1.1.3.0", name="Uptime", unit="cs")
    SnmpJobOid.objects.create(job=job, position=5, oid="1.3.6.1.4.1.9.1")
    node = make_node(job=job)
    wish = ClaimRequest(node.workflow.olt_id, "get_x", Origin.SCHEDULE, node_id=node.id)
    [claimed] = store.claim([wish], owner="engine/test", now=NOW)

    run = store.take(claimed.execution_id, claimed.token, owner="engine/test", now=NOW)

    assert run is not None
    assert run.request.columns == ("onu.description", "onu.distance")
    assert run.request.oids == (FreeOid("1.3.6.1.4.1.9.1"), FreeOid("1.3.6.1.2.1.1.3.0", "Uptime", "cs"))
