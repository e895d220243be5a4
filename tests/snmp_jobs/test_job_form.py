"""The admin's form of a job takes only what a device can be asked for, and says in words what is wrong."""

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from facho.snmp_jobs.models import SnmpJob, SnmpJobOid
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


def add_job(administrator: Client, *, column: str = "", oid: str = "", **changes: str) -> Any:
    row = {"oids-0-column_key": column, "oids-0-oid": oid}
    return administrator.post(reverse("admin:snmp_jobs_snmpjob_add"), JOB | row | changes)


@pytest.mark.parametrize("oid", ["sysUpTime.0", "1.3.6..1", "1", "9.9.9", "1.3.6.1.99999999999"])
def test_what_is_no_oid_is_refused_beside_it(administrator: Client, oid: str) -> None:
    assert "An OID is numbers joined by dots" in add_job(administrator, oid=oid).content.decode()
    assert not SnmpJob.objects.exists()


def test_an_oid_of_the_operators_own_is_saved(administrator: Client) -> None:
    assert add_job(administrator, oid=".1.3.6.1.2.1.1.3.0").status_code == 302


def test_an_oid_is_spelled_in_one_way(administrator: Client) -> None:
    add_job(administrator, oid=".1.3.6.1.02.1.1.3.0", **{"oids-0-name": "Uptime", "oids-0-unit": "cs"})

    read = SnmpJob.objects.get().oids.get()
    assert (read.oid, read.name, read.unit) == ("1.3.6.1.2.1.1.3.0", "Uptime", "cs")


def test_a_job_reads_several_columns_and_oids(administrator: Client) -> None:
    second = {"oids-TOTAL_FORMS": "2", "oids-1-position": "1", "oids-1-oid": "1.3.6.1.2.1.1.3.0"}

    assert add_job(administrator, column="onu.description", **second).status_code == 302
    assert SnmpJob.objects.get().oids.count() == 2


def test_an_oid_above_live_columns_is_refused_beside_it(administrator: Client) -> None:
    page = add_job(administrator, oid="1.3.6.1.4.1.2011.6.128.1.1.2.51").content.decode()

    assert "This OID contains onu.temperature, which is queried from each ONU: read that column instead." in page
    assert not SnmpJob.objects.exists()


@pytest.mark.parametrize("row", [{"oid": "1.3.6.1.2.1.1.3.0"}, {"column": "onu.description"}])
def test_a_discovery_takes_nothing_that_it_would_not_read(administrator: Client, row: dict[str, str]) -> None:
    page = add_job(administrator, query_type="discovery", **row).content.decode()

    assert "A discovery reads only onu.serial, onu.mac, onu.id" in page
    assert add_job(administrator, query_type="discovery", column="onu.serial").status_code == 302


@pytest.mark.parametrize(("text", "seconds"), [("1h", 3600), ("90m", 5400), ("1d", 86400), ("3600", 3600)])
def test_an_interval_is_written_as_people_do(administrator: Client, text: str, seconds: int) -> None:
    add_job(administrator, column="onu.description", interval_seconds=text, retry_delay_seconds="2m")

    job = SnmpJob.objects.get()
    assert (job.interval_seconds, job.retry_delay_seconds) == (seconds, 120)


@pytest.mark.parametrize("text", ["soon", "5x", "-5m", ""])
def test_what_is_no_interval_is_reported_beside_it(administrator: Client, text: str) -> None:
    page = add_job(administrator, column="onu.description", interval_seconds=text).content.decode()

    assert ("Enter seconds, or a number with s, m, h or d" if text else "This field is required.") in page
    assert not SnmpJob.objects.exists()


def test_an_interval_beyond_a_year_is_refused(administrator: Client) -> None:
    page = add_job(administrator, column="onu.description", interval_seconds="99999d").content.decode()

    assert "An interval is at most a year." in page


def test_the_form_of_a_node_shows_and_takes_intervals_as_people_write_them(administrator: Client) -> None:
    node = make_node()
    change = reverse("admin:snmp_jobs_workflownode_change", args=[node.pk])

    assert 'value="5m"' in administrator.get(change).content.decode()
    administrator.post(change, {"enabled": "on", "interval_seconds": "10m", "priority": "50"})

    node.refresh_from_db()
    assert node.interval_seconds == 600


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
        ({"oid": "1.3.6.1"}, "Give either a column of the definition or an OID."),
    ],
)
def test_a_broken_rule_is_reported_in_words(administrator: Client, changes: dict[str, str], words: str) -> None:
    page = add_job(administrator, column="onu.description", **changes).content.decode()

    assert words in page
    assert "Constraint" not in page


def test_a_node_without_an_interval_is_reported_in_words(administrator: Client) -> None:
    node = make_node()
    change = reverse("admin:snmp_jobs_workflownode_change", args=[node.pk])

    page = administrator.post(change, {"interval_seconds": "0", "priority": "50"}).content.decode()

    assert "The interval is at least one second." in page
    assert "Constraint" not in page


def test_history_is_a_choice_for_what_has_none_of_itself(administrator: Client) -> None:
    refused = add_job(administrator, column="onu.description", **{"oids-0-keeps_history": "on"})
    add_job(administrator, column="board.cpu", **{"oids-0-keeps_history": "on"})

    assert "Keeping history is optional only" in refused.content.decode()
    assert list(SnmpJobOid.objects.values_list("column_key", "keeps_history")) == [("board.cpu", True)]
