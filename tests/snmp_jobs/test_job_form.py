"""The admin's form of a job takes only what a device can be asked for, and says in words what is wrong."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from facho.snmp_jobs.models import SnmpJob
from factories import make_node

pytestmark = pytest.mark.django_db

JOB = {
    "name": "Description",
    "slug": "description",
    "vendor": "huawei_smartax",
    "query_type": "get",
    "interval_seconds": "3600",
    "cadence": "fixed_rate",
    "priority": "50",
    "max_attempts": "3",
    "retry_delay_seconds": "120",
    "chain_condition": "always",
    "oids-TOTAL_FORMS": "1",
    "oids-INITIAL_FORMS": "0",
    "oids-0-position": "0",
}


@pytest.fixture
def administrator() -> Client:
    client = Client(headers={"accept-language": "en"})
    client.force_login(User.objects.create_superuser("boss"))
    return client


def add_job(administrator: Client, *, column: str = "", oid: str = "", **changes: str) -> Any:
    row = {"oids-0-column_key": column, "oids-0-oid": oid}
    return administrator.post(reverse("admin:snmp_jobs_snmpjob_add"), JOB | row | changes)


@pytest.mark.parametrize("oid", ["sysUpTime.0", "1.3.6..1", "1", "9.9.9", "1.3.6.1.99999999999"])
def test_what_is_no_oid_is_refused_beside_it(administrator: Client, oid: str) -> None:
    assert "An OID is numbers joined by dots" in add_job(administrator, oid=oid).content.decode()
    assert not SnmpJob.objects.exists()


def test_an_oid_of_the_operators_own_is_saved(administrator: Client) -> None:
    assert add_job(administrator, oid=".1.3.6.1.2.1.1.3.0").status_code == 302


def test_a_column_that_the_vendor_does_not_have_is_refused(administrator: Client) -> None:
    page = add_job(administrator, column="onu.mood").content.decode()

    assert "The vendor definition has no column onu.mood." in page
    assert not SnmpJob.objects.exists()


def test_a_job_for_every_olt_reads_columns_that_some_vendor_has(administrator: Client) -> None:
    page = add_job(administrator, column="onu.mood", vendor="").content.decode()

    assert "No vendor has a column onu.mood." in page
    assert add_job(administrator, column="onu.description", vendor="").status_code == 302


def test_a_vendor_that_nothing_defines_is_refused(administrator: Client) -> None:
    page = add_job(administrator, column="onu.description", vendor="acme").content.decode()

    assert "Select a valid choice. acme is not one of the available choices." in page
    assert not SnmpJob.objects.exists()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"interval_seconds": "0"}, "The interval is at least one second."),
        ({"oid": "1.3.6.1"}, "Give a column of the definition or an OID, and only one of them."),
    ],
)
def test_a_broken_rule_is_told_in_words(administrator: Client, changes: dict[str, str], words: str) -> None:
    page = add_job(administrator, column="onu.description", **changes).content.decode()

    assert words in page
    assert "Constraint" not in page


def test_a_node_without_an_interval_is_told_in_words(administrator: Client) -> None:
    node = make_node()
    change = reverse("admin:snmp_jobs_workflownode_change", args=[node.pk])

    page = administrator.post(change, {"interval_seconds": "0", "priority": "50"}).content.decode()

    assert "The interval is at least one second." in page
    assert "Constraint" not in page
