"""The administration is a part of the product: its bar, its style and its messages, with names as they are written."""

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from api.rows import make_execution, make_node, make_olt, make_user
from facho.accounts.roles import Role
from facho.polling.domain.execution_state import ExecutionState
from facho.snmp_jobs.models import WorkflowNode

pytestmark = pytest.mark.django_db


@pytest.fixture
def admin() -> Client:
    client = Client(headers={"accept-language": "en"})
    client.force_login(make_user(Role.ADMIN, "ana"))
    return client


def test_the_administration_has_the_bar_and_the_style_of_the_product(admin: Client) -> None:
    pages = [admin.get(address).content.decode() for address in ("/admin/", "/admin/hosts/olt/", "/settings/olts/")]

    for page in pages:
        assert '<header class="bar">' in page
        assert 'id="go-settings" href="/settings/" aria-current="page"' in page
        assert "dashboard/facho.css" in page
    assert "theme.js" not in pages[0]
    assert 'id="header"' not in pages[0]


def test_a_message_keeps_the_case_of_a_name(admin: Client) -> None:
    node, now = make_node(make_olt("eL norte")), timezone.now()
    make_execution(node, ExecutionState.SUCCESS, at=now - timedelta(seconds=90), duration_ms=90_000)
    WorkflowNode.objects.update(last_run_at=now)

    page = admin.post(
        f"/admin/snmp_jobs/workflownode/{node.id}/change/",
        {"enabled": "on", "interval_seconds": "1m", "priority": 50},
        follow=True,
    ).content.decode()

    assert 'class="banner warn warning" role="alert">eL norte needs 90 min' in page


def test_what_has_no_vendor_is_a_choice_with_words(admin: Client) -> None:
    make_olt("one", vendor=""), make_olt("two", vendor="huawei_smartax")

    page = admin.get("/admin/hosts/olt/").content.decode()
    assert '<a href="?vendor=none">none</a>' in page.replace("\n", "")
    chosen = admin.get("/admin/hosts/olt/?vendor=none").content.decode()
    assert ">one</a>" in chosen
    assert ">two</a>" not in chosen
