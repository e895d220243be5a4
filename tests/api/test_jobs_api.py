"""Jobs over the API: read by all, written by admins, under the same rules as in the admin."""

import json
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from rest_framework.test import APIClient

from api.rows import make_node, make_olt
from facho.api import jobs
from facho.snmp_jobs.models import SnmpJob, WorkflowNode

pytestmark = pytest.mark.django_db

ENGLISH = {"accept-language": "en"}
UPTIME: dict[str, Any] = {
    "name": "Uptime",
    "slug": "uptime",
    "vendor": "",
    "query_type": "get",
    "interval_seconds": 600,
    "oids": [{"oid": "1.3.6.1.2.1.1.3.0", "name": "uptime"}],
}


def faults(answer: Any) -> dict[str, str]:
    return {error["field"]: error["detail"] for error in answer.json()["errors"]}


def test_a_job_is_added_changed_and_deleted_and_the_trail_says_so(admin: APIClient) -> None:
    added = admin.post("/api/v1/jobs/", UPTIME, format="json")
    job_id = added.json()["id"]
    reads = [{"oid": "1.3.6.1.2.1.1.5.0"}, {"oid": "1.3.6.1.2.1.1.3.0", "keeps_history": True}]
    changed = admin.patch(f"/api/v1/jobs/{job_id}/", {"interval_seconds": 900, "oids": reads}, format="json")
    deleted = admin.delete(f"/api/v1/jobs/{job_id}/")

    assert (added.status_code, changed.status_code, deleted.status_code) == (201, 200, 204)
    assert added.json()["oids"][0]["name"] == "uptime"
    body = changed.json()
    assert (body["interval_seconds"], body["name"], body["task_type"]) == (900, "Uptime", "get_uptime")
    assert [(read["oid"], read["keeps_history"]) for read in body["oids"]] == [
        ("1.3.6.1.2.1.1.5.0", False),
        ("1.3.6.1.2.1.1.3.0", True),
    ]
    assert [entry.action_flag for entry in LogEntry.objects.order_by("id")] == [1, 2, 3]
    assert not SnmpJob.objects.exists()


@pytest.mark.parametrize("strange", ["\x00", "\ud800", "a" * 10_000])
def test_a_strange_name_is_refused_in_letters_that_can_be_sent(admin: APIClient, strange: str) -> None:
    job_id = admin.post("/api/v1/jobs/", UPTIME, format="json").json()["id"]

    answer = admin.patch(
        f"/api/v1/jobs/{job_id}/", json.dumps({"priority": 90, strange: 1}), content_type="application/json"
    )

    assert answer.status_code == 400
    [error] = answer.json()["errors"]
    assert (error["code"], error["field"]) == ("unknown", ("\ufffd" if len(strange) == 1 else "a" * 60))
    assert SnmpJob.objects.get().priority == 50


def test_what_is_not_named_stays(admin: APIClient) -> None:
    job_id = admin.post("/api/v1/jobs/", UPTIME, format="json").json()["id"]

    body = admin.patch(f"/api/v1/jobs/{job_id}/", {"priority": 90}, format="json").json()

    assert (body["priority"], body["interval_seconds"], len(body["oids"])) == (90, 600, 1)


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"oids": [{"oid": "not.an.oid"}]}, "oids.0.oid"),
        ({"oids": [{"column_key": "no_such_column"}]}, "oids.0.column_key"),
        ({"hours_from": "08:00"}, "hours_to"),
        ({"interval_seconds": 0}, "interval_seconds"),
        ({"vendor": "nobody"}, "vendor"),
        ({"master_job_id": 4711}, "master_job_id"),
        ({"query_type": "guess"}, "query_type"),
    ],
)
def test_a_job_that_would_not_do_is_refused_by_its_field(admin: APIClient, changes: dict[str, Any], field: str) -> None:
    answer = admin.post("/api/v1/jobs/", {**UPTIME, **changes}, format="json")

    assert answer.status_code == 400
    assert field in faults(answer)
    assert not SnmpJob.objects.exists()


def test_a_job_that_asks_too_often_is_refused_as_in_the_admin(admin: APIClient) -> None:
    wish = {**UPTIME, "vendor": "huawei_smartax", "interval_seconds": 5, "oids": [{"column_key": "onu.rx_power"}]}

    answer = admin.post("/api/v1/jobs/", wish, format="json")

    assert answer.status_code == 400
    assert "oids" in faults(answer)


def test_a_job_is_put_on_olts_and_its_first_run_is_planned(admin: APIClient) -> None:
    job_id = admin.post("/api/v1/jobs/", UPTIME, format="json").json()["id"]
    north, south = make_olt("North", vendor="huawei_smartax"), make_olt("South", vendor="huawei_smartax")

    first = admin.post(f"/api/v1/jobs/{job_id}/apply/", {"olts": [south.id, north.id]}, format="json")
    again = admin.post(f"/api/v1/jobs/{job_id}/apply/", {"olts": [north.id]}, format="json")

    assert [(each["olt"], [node["name"] for node in each["nodes"]]) for each in first.json()] == [
        ("North", ["Uptime"]),
        ("South", ["Uptime"]),
    ]
    assert [(each["nodes"], each["has"]) for each in again.json()] == [([], ["Uptime"])]
    assert WorkflowNode.objects.filter(next_run_at__isnull=False).count() == 2


def test_who_puts_a_job_on_an_olt_a_moment_later_is_reported(admin: APIClient, monkeypatch: pytest.MonkeyPatch) -> None:
    job_id = admin.post("/api/v1/jobs/", UPTIME, format="json").json()["id"]
    olt = make_olt(vendor="huawei_smartax")
    carry_out = jobs.apply_plan

    def carry_out_late(*arguments: Any, **options: Any) -> int:
        carry_out(*arguments, **options)
        return carry_out(*arguments, **options)

    monkeypatch.setattr(jobs, "apply_plan", carry_out_late)

    answer = admin.post(f"/api/v1/jobs/{job_id}/apply/", {"olts": [olt.id]}, format="json")

    assert answer.status_code == 409
    assert not WorkflowNode.objects.exists()


def test_a_job_is_not_put_on_an_olt_that_is_not_there(admin: APIClient) -> None:
    job_id = admin.post("/api/v1/jobs/", UPTIME, format="json").json()["id"]

    answer = admin.post(f"/api/v1/jobs/{job_id}/apply/", {"olts": [make_olt().id, 4711]}, format="json")

    assert (answer.status_code, faults(answer)) == (400, {"olts": "There is no OLT 4711."})
    assert not WorkflowNode.objects.exists()


def test_a_chain_changed_over_the_api_reaches_its_nodes(admin: APIClient) -> None:
    master = make_node(name="State")
    member = make_node(master.workflow.olt, name="Light")

    answer = admin.patch(f"/api/v1/jobs/{member.job_id}/", {"master_job_id": master.job_id}, format="json")

    member.refresh_from_db()
    assert answer.status_code == 200
    assert (member.is_chain_node, member.master_node) == (True, master)


def test_a_list_tells_on_how_many_olts_a_job_is(viewer: APIClient) -> None:
    make_node(name="State")

    (job,) = viewer.get("/api/v1/jobs/?search=stat").json()["results"]

    assert (job["name"], job["nodes"]) == ("State", 1)


def test_who_may_not_write_reads(viewer: APIClient, operator: APIClient) -> None:
    for client in (viewer, operator):
        assert client.get("/api/v1/jobs/").status_code == 200
        assert client.post("/api/v1/jobs/", UPTIME, format="json").status_code == 403
