"""States of an execution, and the type of its task."""

import pytest

from facho.polling.domain.execution_state import ACTIVE, TERMINAL, ExecutionState, QueryType
from facho.polling.domain.schedule import task_type


def test_only_pending_and_running_hold_an_olt() -> None:
    assert {ExecutionState.PENDING, ExecutionState.RUNNING} == ACTIVE
    assert ACTIVE.isdisjoint(TERMINAL)


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
