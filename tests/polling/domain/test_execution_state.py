"""States of an execution (decision D9)."""

import pytest

from facho.polling.domain.execution_state import ACTIVE, TERMINAL, ExecutionState, may_follow
from facho.polling.domain.task_type import QueryType, task_type


def test_a_final_state_has_no_followers() -> None:
    """D9: the last four are terminal and final; S3-17."""
    assert not [(one, other) for one in TERMINAL for other in ExecutionState if may_follow(one, other)]


def test_only_pending_and_running_hold_an_olt() -> None:
    assert {ExecutionState.PENDING, ExecutionState.RUNNING} == ACTIVE
    assert ACTIVE.isdisjoint(TERMINAL)


def test_a_pending_execution_runs_or_is_withdrawn_but_never_succeeds_unseen() -> None:
    """S2-05: PENDING -> RUNNING in the worker."""
    assert may_follow(ExecutionState.PENDING, ExecutionState.RUNNING)
    assert not may_follow(ExecutionState.PENDING, ExecutionState.SUCCESS)


@pytest.mark.parametrize(
    ("query_type", "slug", "expected"),
    [
        (QueryType.DISCOVERY, "descubrimiento", "discovery"),
        (QueryType.GET, "descripcion", "get_descripcion"),
        (QueryType.WALK, "estado", "walk_estado"),
    ],
)
def test_a_task_type_is_discovery_or_names_its_job(query_type: QueryType, slug: str, expected: str) -> None:
    """S4-19."""
    assert task_type(query_type, slug) == expected
