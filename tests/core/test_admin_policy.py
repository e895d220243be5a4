"""Every page of the admin under the policy that lets no inline script run and asks nobody else for anything."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib import admin
from django.db.models import Model
from django.test import Client
from django.urls import reverse

from api.rows import make_node, make_onu
from facho.core.security import POLICY
from facho.hosts.models import Olt
from web.page_offences import offences_of

pytestmark = pytest.mark.django_db


def addresses(model: type[Model]) -> Iterator[str]:
    """Name the pages that Django has for a model; those of a row for the first row that there is."""
    name = f"admin:{model._meta.app_label}_{model._meta.model_name}"
    yield reverse(f"{name}_changelist")
    yield reverse(f"{name}_add")
    row = model._default_manager.values_list("pk", flat=True).first()
    for page in ("change", "delete", "history") if row is not None else ():
        yield reverse(f"{name}_{page}", args=[row])


def actions(client: Client, model: type[Model]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Name what the list's actions would be asked for the first row."""
    request: Any = client.get(reverse("admin:index")).wsgi_request
    row = model._default_manager.values_list("pk", flat=True).first()
    for action in admin.site._registry[model].get_actions(request) if row is not None else ():
        place = reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")
        yield place, {"action": action, "_selected_action": [row]}


def check(answer: Any, place: str) -> None:
    assert answer["Content-Security-Policy"] == POLICY, place
    if answer["Content-Type"].startswith("text/html"):
        assert offences_of(answer.content.decode()) == [], place


def test_what_the_policy_would_stop_is_seen() -> None:
    page = '<script>go()</script><a onclick="x" href="javascript:y"><img src="https://elsewhere.example/a.png">'

    assert len(offences_of(page)) == 4


@pytest.mark.parametrize("model", list(admin.site._registry), ids=lambda model: model._meta.label_lower)
def test_every_page_of_every_model_keeps_the_policy(administrator: Client, model: type[Model]) -> None:
    node = make_node()
    make_onu(node.workflow.olt)

    for place in addresses(model):
        answer = administrator.get(place)
        assert answer.status_code in (200, 403), place
        check(answer, place)
    for place, inputs in list(actions(administrator, model)):
        check(administrator.post(place, inputs, follow=True), f"{place} {inputs['action']}")


def test_the_pages_that_belong_to_no_model_keep_the_policy(administrator: Client) -> None:
    job = make_node().job
    places = [
        "/admin/",
        *(
            reverse("admin:app_list", args=[label])
            for label in {model._meta.app_label for model in admin.site._registry}
        ),
        reverse("admin:hosts_olt_import"),
        f"{reverse('admin:snmp_jobs_snmpjob_apply')}?jobs={job.pk}",
    ]

    for place in places:
        answer = administrator.get(place)
        assert answer.status_code == 200, place
        check(answer, place)
    check(Client().get("/admin/login/"), "login")


def test_what_is_shown_before_it_is_done_keeps_the_policy(administrator: Client) -> None:
    hostile = "<script>alert(1)</script>"
    job = make_node().job
    apply_place = f"{reverse('admin:snmp_jobs_snmpjob_apply')}?jobs={job.pk}"
    csv = f'name,host,port,vendor,version,community\n"{hostile}",192.0.2.1,,,,x\n'
    Olt.objects.update(name=hostile)

    imported = administrator.post(reverse("admin:hosts_olt_import"), {"text": csv})
    applied = administrator.post(apply_place, {"everything": "on"})

    for answer in (imported, applied):
        assert b"&lt;script&gt;alert(1)" in answer.content
        check(answer, "shown")
