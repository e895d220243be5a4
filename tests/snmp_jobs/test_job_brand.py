"""The brand of a job (the specification's first field of one): which OLTs it is offered for and applied to (S3-01)."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from rest_framework.test import APIClient

from api.rows import make_user
from core.test_admin_operations import JOB
from facho.accounts.roles import Role
from facho.hosts.models import Brand, Olt, OltModel
from facho.snmp_jobs.application import apply_ready_made_jobs
from facho.snmp_jobs.models import SnmpJob, Workflow, WorkflowNode
from factories import NOW, make_node, make_olt

pytestmark = pytest.mark.django_db


@pytest.fixture
def api(db: None) -> APIClient:
    """A program that may do everything."""
    client = APIClient(headers={"accept-language": "en"})
    client.force_login(make_user(Role.ADMIN))
    return client


def make_branded_job(brand: str, vendor: str = "") -> SnmpJob:
    row, _ = Brand.objects.get_or_create(name=brand)
    return SnmpJob.objects.create(name="Uptime", slug="uptime", vendor=vendor, brand=row, query_type="get")


def apply_page(*jobs: SnmpJob) -> str:
    return f"{reverse('admin:snmp_jobs_snmpjob_apply')}?jobs={','.join(str(job.pk) for job in jobs)}"


def offered(client: Client, job: SnmpJob) -> list[str]:
    groups = client.get(apply_page(job)).context["form"].fields["olts"].choices
    return [name for _group, olts in groups for _value, name in olts]


def test_a_job_is_offered_for_the_olts_of_its_brand(administrator: Client) -> None:
    """S3-01: by the vendor definition, or by the model that an OLT said it is."""
    brand = Brand.objects.create(name="Huawei")
    by_vendor, other = make_olt(vendor="huawei_smartax"), make_olt(vendor="zte_c300_c320")
    by_model, unknown = make_olt(vendor="generic"), make_olt(vendor="")
    Olt.objects.filter(id=by_model.id).update(model=OltModel.objects.create(brand=brand, name="MA5608T"))

    assert offered(administrator, make_branded_job("Huawei")) == [by_vendor.name, by_model.name]
    assert {other.name, unknown.name}.isdisjoint(offered(administrator, SnmpJob.objects.get()))


def test_a_job_without_a_brand_is_offered_for_every_olt(administrator: Client) -> None:
    olts = [make_olt(vendor=vendor) for vendor in ("huawei_smartax", "zte_c300_c320", "")]
    job = SnmpJob.objects.create(name="Uptime", slug="uptime", query_type="get")

    assert offered(administrator, job) == [olt.name for olt in olts]


def test_the_page_says_that_no_olt_is_of_the_brand(administrator: Client) -> None:
    make_olt(vendor="zte_c300_c320")

    page = administrator.get(apply_page(make_branded_job("Huawei"))).content.decode()

    assert "No OLT is of the brand and the vendor that these jobs are for." in page
    assert "Uptime" in page


def test_what_was_not_offered_cannot_be_smuggled_in(administrator: Client) -> None:
    other = make_olt(vendor="zte_c300_c320")
    job = make_branded_job("Huawei")

    administrator.post(apply_page(job), {"olts": [str(other.pk)]})
    administrator.post(apply_page(job), {"shown": "x", "chosen": str(other.pk)})

    assert not WorkflowNode.objects.exists()


@pytest.mark.parametrize(
    ("vendor", "why"),
    [
        ("zte_c300_c320", "it is for OLTs of Huawei, and this one is of ZTE"),
        ("", "it is for OLTs of Huawei, and the brand of this OLT is not known yet"),
    ],
)
def test_the_api_says_why_an_olt_did_not_get_a_job(api: APIClient, vendor: str, why: str) -> None:
    other, fitting = make_olt(vendor=vendor), make_olt(vendor="huawei_smartax")
    job = make_branded_job("Huawei")

    answer = api.post(f"/api/v1/jobs/{job.pk}/apply/", {"olts": [other.pk, fitting.pk]}, format="json").json()

    assert [node["problems"] for each in answer for node in each["nodes"]] == [[why], []]
    assert list(WorkflowNode.objects.values_list("workflow__olt_id", flat=True)) == [fitting.pk]


def test_the_node_form_refuses_an_olt_of_another_brand(administrator: Client) -> None:
    workflow = Workflow.objects.create(olt=make_olt(vendor="zte_c300_c320"))
    wish = {"workflow": workflow.pk, "job": make_branded_job("Huawei").pk, "enabled": "on", "interval_seconds": "5m"}

    page = administrator.post(reverse("admin:snmp_jobs_workflownode_add"), wish | {"priority": "50"})

    assert "This job cannot run on this OLT: it is for OLTs of Huawei, and this one is of ZTE." in page.content.decode()
    assert not WorkflowNode.objects.exists()


def test_a_ready_made_job_that_was_given_another_brand_is_not_applied_to_new_olts() -> None:
    first, second = make_olt(), make_olt()
    apply_ready_made_jobs(first, now=NOW)
    WorkflowNode.objects.all().delete()
    discovery = SnmpJob.objects.get(query_type="discovery")
    SnmpJob.objects.filter(pk=discovery.pk).update(brand=Brand.objects.create(name="Other"))

    apply_ready_made_jobs(second, now=NOW + timedelta(minutes=1))

    assert WorkflowNode.objects.filter(workflow__olt=second).exists()
    assert not WorkflowNode.objects.filter(job=discovery).exists()


def change_brand(client: Client, job: SnmpJob, brand: Brand | None) -> Any:
    values = JOB | {"name": job.name, "slug": job.slug, "brand": str(brand.pk) if brand else ""}
    return client.post(reverse("admin:snmp_jobs_snmpjob_change", args=[job.pk]), values)


def test_a_job_keeps_its_brand_while_it_is_on_olts_of_it(administrator: Client, api: APIClient) -> None:
    """Whoever changes the brand takes the job off those OLTs first: nothing is removed behind anybody's back."""
    job, zte = make_branded_job("Huawei"), Brand.objects.create(name="ZTE")
    olt = make_olt(vendor="huawei_smartax")
    node = make_node(olt, job)
    reported = f"The job is on OLTs of another brand: {olt.name}. Delete its nodes there first."

    page = change_brand(administrator, job, zte)
    answer = api.patch(f"/api/v1/jobs/{job.pk}/", {"brand": "ZTE"}, format="json")

    assert reported in page.content.decode()
    assert (answer.status_code, answer.json()["errors"]) == (
        400,
        [{"field": "brand", "code": "invalid", "detail": reported}],
    )
    assert SnmpJob.objects.get().brand == job.brand
    node.delete()
    assert change_brand(administrator, job, zte).status_code == 302
    assert SnmpJob.objects.get().brand == zte


def test_a_job_may_lose_its_brand_and_change_otherwise(administrator: Client) -> None:
    """An OLT that was given another vendor keeps its nodes; their job can still be renamed."""
    job = make_branded_job("Huawei")
    make_node(make_olt(vendor="zte_c300_c320"), job)
    job.name = "Renamed"

    assert change_brand(administrator, job, job.brand).status_code == 302
    assert change_brand(administrator, job, None).status_code == 302
    assert (SnmpJob.objects.get().name, SnmpJob.objects.get().brand) == ("Renamed", None)


def test_the_api_shows_and_takes_the_brand(api: APIClient) -> None:
    Brand.objects.create(name="Huawei")
    wish = {"name": "Uptime", "slug": "uptime", "query_type": "get", "interval_seconds": 300, "brand": "Huawei"}

    made = api.post("/api/v1/jobs/", wish, format="json")
    refused = api.post("/api/v1/jobs/", wish | {"slug": "other", "brand": "Nobody"}, format="json")

    assert made.json()["brand"] == "Huawei"
    assert [error["field"] for error in refused.json()["errors"]] == ["brand"]


def test_a_new_job_has_the_defaults_of_the_specification(administrator: Client) -> None:
    """S3-18, S3-19: three attempts, two minutes between them, and five minutes of interval, shown and kept."""
    place = reverse("admin:snmp_jobs_snmpjob_add")
    form = administrator.get(place).context["adminform"].form
    shown = {name: form[name].value() for name in ("interval_seconds", "retry_delay_seconds", "max_attempts")}
    assert shown == {"interval_seconds": "5m", "retry_delay_seconds": "2m", "max_attempts": 3}

    as_shown = {name: str(value) for name, value in shown.items()}
    page = administrator.post(place, JOB | as_shown | {"slug": "not a slug"})
    again = page.context["adminform"].form
    assert {name: str(again[name].value()) for name in shown} == as_shown

    assert administrator.post(place, JOB | as_shown).status_code == 302
    job = SnmpJob.objects.get()
    assert (job.interval_seconds, job.retry_delay_seconds, job.max_attempts) == (300, 120, 3)
