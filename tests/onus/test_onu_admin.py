"""The admin's page of an ONU: people write the customer, and nothing of what polls write."""

import pytest
from django.test import Client
from django.urls import reverse
from onu_world import HERE, THERE, after, walk

from api.rows import make_user
from facho.accounts.roles import Role
from facho.hosts.models import Olt, Reachability
from facho.onus.models import Onu, OnuCustomer, OnuReading
from factories import make_olt

pytestmark = pytest.mark.django_db


@pytest.fixture
def administrator() -> Client:
    client = Client()
    client.force_login(make_user(Role.ADMIN))
    return client


def test_a_customer_is_written_and_the_onu_left_alone(administrator: Client) -> None:
    walk(make_olt(), {HERE: "HWTC1"})
    onu = Onu.objects.get()
    inputs = {"label": "Ana", "address": "Calle 1", "phone": "", "notes": "", "tags": "vip,,vip , norte"}

    answer = administrator.post(
        reverse("admin:onus_onu_change", args=[onu.id]),
        {
            "serial": "OTHER",
            "customer-TOTAL_FORMS": 1,
            "customer-INITIAL_FORMS": 0,
            **{f"customer-0-{name}": text for name, text in inputs.items()},
        },
    )

    customer = OnuCustomer.objects.get(onu=onu)
    assert answer.status_code == 302
    assert (customer.label, customer.address, customer.tags) == ("Ana", "Calle 1", "vip, norte")
    assert Onu.objects.get().serial == "HWTC1"


def test_only_an_onu_that_has_left_can_be_deleted(administrator: Client) -> None:
    olt = make_olt()
    walk(olt, {HERE: "HWTC1", THERE: "HWTC2"})
    for number in (1, 2):
        walk(olt, {HERE: "HWTC1"}, now=after(number))

    answers = {
        onu.serial: administrator.post(reverse("admin:onus_onu_delete", args=[onu.id]), {"post": "yes"}).status_code
        for onu in Onu.objects.all()
    }

    assert answers == {"HWTC1": 403, "HWTC2": 302}
    assert [onu.serial for onu in Onu.objects.all()] == ["HWTC1"]


def test_the_admin_says_nobody_is_down_behind_a_silent_olt(administrator: Client) -> None:
    walk(make_olt(), {HERE: "HWTC1"})
    OnuReading.objects.update(run_state="offline")
    Olt.objects.update(reachability=Reachability.DOWN)

    found = {
        state: "HWTC1" in administrator.get(f"{reverse('admin:onus_onu_changelist')}?state={state}").content.decode()
        for state in ("offline", "unknown")
    }

    assert found == {"offline": False, "unknown": True}
