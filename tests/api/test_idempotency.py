"""A request that comes again under its key is answered as the first time, and does nothing more."""

from datetime import datetime, timedelta

import pytest
from django.contrib.auth.models import User
from django.utils import timezone
from rest_framework.test import APIClient

from api.rows import make_node, make_user
from facho.accounts.roles import Role
from facho.api.models import KeptAnswer
from facho.api.tokens import create_token
from facho.hosts.models import OltGroup
from facho.snmp_jobs.models import WorkflowNode
from facho.zabbix_pollers import views
from facho.zabbix_pollers.run_now import Asked, ask_for_run

pytestmark = pytest.mark.django_db

KEY = {"Idempotency-Key": "deploy-42"}


def run(client: APIClient, node: WorkflowNode, **headers: str) -> tuple[int, dict[str, object], bool]:
    answer = client.post(f"/api/v1/pollers/nodes/{node.id}/run/", headers=headers or KEY)
    return answer.status_code, answer.json(), "Idempotent-Replayed" in answer.headers


def granted(node: WorkflowNode) -> None:
    """Let the scheduler take the wish back, as it does when the run starts."""
    WorkflowNode.objects.filter(id=node.id).update(run_requested_at=None)


def wish(node: WorkflowNode) -> bool:
    node.refresh_from_db()
    return node.run_requested_at is not None


def test_a_repeated_request_asks_for_one_run(operator: APIClient) -> None:
    node = make_node()
    first = run(operator, node)
    granted(node)

    second = run(operator, node)

    assert (first[0], first[2], second[2]) == (202, False, True)
    assert second[:2] == first[:2]
    assert not wish(node)


def test_a_kept_answer_is_not_given_to_who_may_not_see_its_olt() -> None:
    user, node = make_user(Role.OPERATOR), make_node()
    elsewhere = OltGroup.objects.create(name="Elsewhere")
    texts = create_token(user), create_token(user, olt_groups=[elsewhere])
    whole, narrow = (APIClient(HTTP_AUTHORIZATION=f"Bearer {text}") for text in texts)

    assert run(whole, node)[0] == 202
    assert run(narrow, node)[0] == 404
    assert run(whole, node)[2]


def test_without_a_key_every_request_counts(operator: APIClient) -> None:
    node = make_node()
    for _ in range(2):
        assert run(operator, node, accept="*/*")[0] == 202
        assert wish(node)
        granted(node)
    assert not KeptAnswer.objects.exists()


def test_a_key_belongs_to_one_request_and_to_one_user(operator: APIClient) -> None:
    node, other = make_node(), make_node()
    run(operator, node)
    stranger = APIClient()
    stranger.force_login(make_user(Role.OPERATOR))

    assert run(operator, other)[0] == 409
    assert not wish(other)
    assert run(stranger, other)[0] == 202


def test_a_refused_request_may_come_again_under_its_key(operator: APIClient) -> None:
    master = make_node()
    member = make_node(master=master)

    assert run(operator, member)[0] == 400
    assert run(operator, master)[0] == 202


def test_a_request_that_was_never_answered_is_served_again_after_a_minute(operator: APIClient) -> None:
    node = make_node()
    run(operator, node)
    granted(node)
    KeptAnswer.objects.update(status=None, body=None)

    assert run(operator, node)[0] == 409

    abandon()
    assert run(operator, node)[0] == 202
    assert wish(node)


def test_what_was_never_answered_is_taken_over_by_one_and_for_the_same_request(
    operator: APIClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    node, other = make_node(), make_node()
    run(operator, node)
    abandon()
    meanwhile = []

    def serve(user: User, node_id: int, *, now: datetime) -> Asked:
        meanwhile.append(run(operator, node)[0])
        return ask_for_run(user, node_id, now=now)

    monkeypatch.setattr(views, "ask_for_run", serve)

    assert run(operator, other)[0] == 409
    assert run(operator, node)[0] == 202
    assert meanwhile == [409]


def abandon() -> None:
    """Let whoever served the request have been killed."""
    KeptAnswer.objects.update(status=None, body=None, created_at=timezone.now() - timedelta(minutes=2))


@pytest.mark.parametrize("key", ["x" * 101, "a\tb"])
def test_a_key_that_cannot_be_kept_is_refused(operator: APIClient, key: str) -> None:
    assert run(operator, make_node(), **{"Idempotency-Key": key})[0] == 400


def test_who_may_not_run_leaves_no_key(viewer: APIClient) -> None:
    assert run(viewer, make_node())[0] == 403
    assert not KeptAnswer.objects.exists()
