"""Requests that are made up from the API's own description: none breaks it, and every answer is as described."""

import socket
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from django.core.handlers.wsgi import WSGIHandler
from django.core.signals import request_finished, request_started
from django.db import close_old_connections
from django.utils import timezone
from drf_spectacular.generators import SchemaGenerator
from hypothesis import HealthCheck, Phase, given, seed, settings
from schemathesis import checks
from schemathesis.core.result import Ok

from api.coordinator_rows import make_log, make_plan, make_tracker, make_violation
from api.rows import make_execution, make_node, make_olt, make_onu, make_pollers, make_user, make_waiting_onu
from facho.accounts.roles import Role
from facho.api.tokens import create_token
from facho.hosts.store import pause
from facho.polling.domain.execution_state import ExecutionState

pytestmark = pytest.mark.django_db

# What reaches the database reaches it from an admin: the others need no second one. A push has the first few.
ROLES = [
    *(
        pytest.param(role, 20, marks=[pytest.mark.any_database, pytest.mark.thorough])
        for role in (None, Role.VIEWER, Role.OPERATOR)
    ),
    pytest.param(Role.ADMIN, 20, marks=pytest.mark.thorough),
    (Role.ADMIN, 6),
]
CHECKS = [
    checks.not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_schema_conformance,
]


def described_operations() -> list[Any]:
    """Return every operation of the description, bound to the product in this process."""
    document = SchemaGenerator().get_schema(request=None, public=True)  # type: ignore[no-untyped-call]
    schema = schemathesis.openapi.from_dict(document)
    schema.app = WSGIHandler()
    return [operation.ok() for operation in schema.get_all_operations() if isinstance(operation, Ok)]


@pytest.fixture(autouse=True)
def no_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refuse every connection beyond this machine."""
    connect = socket.socket.connect

    def guarded(self: socket.socket, address: Any) -> None:
        if isinstance(address, tuple) and not str(address[0]).startswith(("127.", "::1")):
            raise AssertionError(f"a way out: {address}")
        connect(self, address)

    def nobody(*_: Any, **__: Any) -> None:
        raise socket.gaierror

    monkeypatch.setattr(socket.socket, "connect", guarded)
    # Looking a made-up name up would ask a server too.
    monkeypatch.setattr(socket, "getaddrinfo", nobody)


@pytest.fixture(autouse=True)
def connection_stays() -> Iterator[None]:
    """Keep the connection whose transaction the test takes back, as Django's own client does."""
    for signal in (request_started, request_finished):
        signal.disconnect(close_old_connections)
    yield
    for signal in (request_started, request_finished):
        signal.connect(close_old_connections)


@pytest.fixture
def rows() -> None:
    """Make one of everything, so that answers are not all empty."""
    make_pollers(2)
    olt = make_olt("North")
    make_onu(olt, run_state="online")
    make_waiting_onu(olt)
    node = make_node(olt)
    make_execution(node, ExecutionState.SUCCESS)
    pause(olt, minutes=5, note="", now=timezone.now())
    make_log(olt)
    make_tracker(olt)
    make_violation(olt)
    make_plan(olt)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:StreamingHttpResponse must consume asynchronous iterators")
@pytest.mark.parametrize(("role", "requests"), ROLES, ids=lambda value: value or "anonymous")
@pytest.mark.parametrize("operation", described_operations(), ids=lambda operation: operation.label)
def test_no_request_finds_a_fault(rows: None, operation: Any, role: Role | None, requests: int) -> None:
    headers = {"Host": "127.0.0.1", "Accept-Language": "en", "Accept-Encoding": "identity"}
    if role is not None:
        headers["Authorization"] = f"Bearer {create_token(make_user(role))}"

    @seed(20300506)
    @settings(
        max_examples=requests,
        deadline=None,
        database=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy())
    def ask(case: Any) -> None:
        answer = case.call(headers=headers)
        case.validate_response(answer, checks=CHECKS)

    ask()
