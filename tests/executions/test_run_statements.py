"""How many statements a run takes from claim to finish: what is not in this list costs every run of every OLT."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import connection
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created

from facho.core.wiring import build_scheduler, open_parts
from facho.executions import store
from facho.executions.models import Execution, Origin
from facho.executions.runner import InProcessExecutor
from facho.executions.store import ClaimRequest, HeldToken, Renewal
from facho.hosts.models import Olt
from facho.polling.domain.collection import Collected, CollectRequest, RunControl, RunProgress
from factories import NOW, chain_to, make_node, make_olt

pytestmark = pytest.mark.django_db(transaction=True)

# A tick looks at what runs, what is due and what people want read; a claim takes token, node and slot, and its poller.
TICK, CLAIM = 3, 5
# Take: the row, what it reads, its attempt. Finish: token, execution, attempt, chain, node, poller, OLT.
TAKE, FINISH = 3, 7
# Token, execution, attempt and what it reads.
OPEN_MEMBER = 4


class Silent:
    """A collector that is heard and brings nothing."""

    async def collect(self, request: CollectRequest, control: RunControl) -> Collected:
        return Collected(was_heard=True)


@contextmanager
def listening() -> Iterator[list[str]]:
    """Note every statement of connections that are opened meanwhile, but not those about transactions and sessions."""
    asked: list[str] = []

    def note(execute: Any, sql: str, *rest: Any) -> Any:
        if sql.startswith(("SELECT", "INSERT", "UPDATE", "DELETE")) and "set_config" not in sql:
            asked.append(sql)
        return execute(sql, *rest)

    def hear(connection: BaseDatabaseWrapper, **_about: object) -> None:
        connection.execute_wrappers.append(note)

    connection_created.connect(hear)
    try:
        yield asked
    finally:
        connection_created.disconnect(hear)


def run_due(asked: list[str]) -> list[str]:
    """Run what is due twice, and return the statements of the second time: the first builds them."""

    async def run() -> list[str]:
        async with open_parts("test") as parts:
            executor = InProcessExecutor(parts.runner(Silent()), lambda: None)
            scheduler = build_scheduler(parts, executor)
            await scheduler.prepare()
            for _ in range(2):
                await parts.database.run(wish)
                await scheduler.leads()
                asked.clear()
                await scheduler.tick()
                await executor.drain(timeout_seconds=30)
            return list(asked)

    return asyncio.run(run())


def wish() -> None:
    with connection.cursor() as cursor:
        cursor.execute("UPDATE snmp_job_hosts SET run_requested_at = %s WHERE master_node_id IS NULL", [NOW])


def test_a_run_takes_few_statements() -> None:
    make_node(next_run_at=None)

    with listening() as asked:
        statements = run_due(asked)

    assert Execution.objects.filter(status="SUCCESS").count() == 2
    assert len(statements) <= TICK + CLAIM + TAKE + FINISH, "\n".join(statements)


def test_a_chain_member_takes_no_more_than_its_own_rows() -> None:
    master = make_node(next_run_at=None)
    for _ in range(2):
        chain_to(master)

    with listening() as asked:
        statements = run_due(asked)

    # The end of the last member is that of the master's run, too.
    members = 2 * (OPEN_MEMBER + FINISH) + 2
    assert Execution.objects.filter(status="SUCCESS").count() == 6
    assert len(statements) <= TICK + CLAIM + TAKE + FINISH + members, "\n".join(statements)


def test_runs_that_start_together_share_tick_and_claim() -> None:
    for _ in range(4):
        make_node(next_run_at=None)

    with listening() as asked:
        statements = run_due(asked)

    assert len(statements) <= TICK + CLAIM + 4 * (TAKE + FINISH), "\n".join(statements)


def taken(owner: str = "engine/test") -> HeldToken:
    [claimed] = store.claim([ClaimRequest(make_olt().id, "get_x", Origin.SCHEDULE)], owner=owner, now=NOW)
    store.take(claimed.execution_id, claimed.token, owner=owner, now=NOW)
    return claimed.execution_id, claimed.token


def test_the_claims_of_a_process_are_renewed_by_two_statements(django_assert_num_queries: Any) -> None:
    held = [taken() for _ in range(5)]

    with django_assert_num_queries(2):
        renewals = store.renew(held)

    assert renewals == dict.fromkeys(held, Renewal.RENEWED)
    assert set(Execution.objects.values_list("lease_counter", flat=True)) == {2}


def test_a_renewal_says_of_each_claim_what_became_of_it() -> None:
    kept, cancelled, disabled, lost = taken(), taken(), taken(), taken()
    store.request_cancel(cancelled[0], now=NOW)
    Olt.objects.filter(executions=disabled[0]).update(enabled=False)
    store.interrupt([lost[0]], reason="gone", now=NOW)

    renewals = store.renew([kept, cancelled, disabled, lost])

    assert renewals == {
        kept: Renewal.RENEWED,
        cancelled: Renewal.CANCELLED,
        disabled: Renewal.CANCELLED,
        lost: Renewal.LOST,
    }


def test_a_renewal_writes_how_far_each_run_has_come(django_assert_num_queries: Any) -> None:
    far, begun = taken(), taken()

    with django_assert_num_queries(2):
        store.renew([far, begun], {far[0]: RunProgress(120, 817, 3, 22)})

    assert Execution.objects.get(id=far[0]).progress == {
        "rows": 120,
        "rows_in_all": 817,
        "ports": 3,
        "ports_in_all": 22,
    }
    assert Execution.objects.get(id=begun[0]).progress is None


def test_a_token_of_another_claim_renews_nothing() -> None:
    """Tokens are counted per OLT, so that two claims may have each other's."""
    (first, token), (second, other) = taken(), taken()
    Execution.objects.filter(id=first).update(token=token + 7)

    renewals = store.renew([(first, other + 1), (second, token + 7)])

    assert set(renewals.values()) == {Renewal.LOST}
    assert set(Execution.objects.values_list("lease_counter", flat=True)) == {1}
