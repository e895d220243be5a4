"""The guided steps as their rows tell them: who may take them, what each shows, and what is stored."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from api.rows import make_execution, make_leader, make_node, make_olt, make_onu, make_user
from facho.accounts.models import Profile
from facho.accounts.roles import Role
from facho.accounts.scope import OltScope
from facho.dashboard.first_run.views import OltDetails
from facho.executions.models import Execution, Origin
from facho.hosts.inventory import EntryProblem, InventoryError
from facho.hosts.models import Olt, OltGroup
from facho.polling.domain.execution_state import ExecutionState
from facho.snmp_jobs.models import Workflow, WorkflowNode
from facho.traps.models import OltTraps
from facho.traps.store import is_switched_on

pytestmark = pytest.mark.django_db

NEW = {"name": "Norte", "host": "127.0.0.1", "port": "16100", "version": "2c", "community": "canary-7f3a"}
V3 = {
    "version": "3",
    "v3_user": "noc",
    "v3_auth_protocol": "SHA-256",
    "v3_auth_key": "canary-auth-7f3a",
    "v3_priv_protocol": "AES",
    "v3_priv_key": "canary-priv-7f3a",
}
HUAWEI = {"vendor": "huawei_smartax", "sys_object_id": "1.3.6.1.4.1.2011.2.248", "sys_name": "olt-norte"}


@pytest.fixture
def admin() -> Client:
    client = Client(headers={"accept-language": "en"})
    client.force_login(make_user(Role.ADMIN))
    return client


def waiting_olt(**fields: Any) -> Olt:
    """Make an OLT whose jobs nobody chose yet."""
    olt = make_olt("Norte", **fields)
    Workflow.objects.create(olt=olt)
    return olt


def probed(olt: Olt, status: ExecutionState, **fields: Any) -> Execution:
    now = timezone.now()
    ended = {} if status in (ExecutionState.PENDING, ExecutionState.RUNNING) else {"finished_at": now}
    place = {"olt": olt, "address": olt.address, "port": olt.port, "task_type": "probe", "origin": Origin.PROBE}
    return Execution.objects.create(**place, status=status, token=1, created_at=now, **ended, **fields)


def page(client: Client, path: str) -> str:
    answer = client.get(path)
    assert answer.status_code == 200
    return answer.content.decode()


def test_an_empty_product_leads_an_administrator_to_the_first_step(admin: Client) -> None:
    make_leader()

    assert 'href="/olts/add/"' in page(admin, "/")
    assert 'name="community"' in page(admin, "/olts/add/")


def test_an_empty_product_asks_nobody_else_to_add_an_olt(viewer: Client) -> None:
    assert "/olts/add/" not in page(viewer, "/")


@pytest.mark.parametrize("role", [Role.VIEWER, Role.OPERATOR])
def test_only_an_administrator_takes_the_steps(role: Role) -> None:
    olt, client = waiting_olt(), Client()
    client.force_login(make_user(role))

    for path in ("/olts/add/", f"/olts/add/{olt.id}/", f"/olts/add/{olt.id}/correct/", f"/olts/add/{olt.id}/jobs/"):
        assert client.get(path).status_code == 403
    for path in ("test", "vendor", "jobs"):
        assert client.post(f"/olts/add/{olt.id}/{path}/").status_code == 403


def test_a_new_olt_waits_for_its_test_and_gets_no_jobs_by_itself(admin: Client) -> None:
    answer = admin.post("/olts/add/", NEW)

    olt = Olt.objects.get()
    assert answer.headers["Location"] == f"/olts/add/{olt.id}/"
    assert olt.community.reveal() == "canary-7f3a"
    assert olt.next_probe_at is not None
    assert Workflow.objects.filter(olt=olt).exists()
    assert not WorkflowNode.objects.exists()


def test_an_olt_of_the_third_version_is_added_with_its_keys(admin: Client) -> None:
    admin.post("/olts/add/", {**NEW, "community": "", **V3})

    olt = Olt.objects.get()
    assert (olt.snmp_version, olt.v3_user, olt.v3_auth_protocol, olt.v3_priv_protocol) == ("3", "noc", "SHA-256", "AES")
    assert (olt.v3_auth_key.reveal(), olt.v3_priv_key.reveal()) == ("canary-auth-7f3a", "canary-priv-7f3a")


@pytest.mark.parametrize(
    ("change", "field", "said"),
    [
        ({"name": ""}, "name", "required"),
        ({"host": "no such host"}, "host", "does not resolve"),
        ({"port": "70000"}, "port", "65535"),
        ({"community": ""}, "community", "Community is missing."),
        ({**V3, "v3_user": ""}, "v3_user", "SNMPv3 needs a user."),
        ({**V3, "v3_auth_key": ""}, "v3_auth_key", "Authentication key is missing."),
        ({**V3, "v3_auth_key": "short"}, "v3_auth_key", "shorter than 8"),
        ({**V3, "v3_auth_protocol": ""}, "v3_priv_protocol", "Privacy needs an authentication protocol."),
        ({**V3, "v3_auth_protocol": "MD5", "v3_priv_protocol": "AES-256"}, "v3_priv_protocol", "goes only with"),
        ({**V3, "v3_priv_key": ""}, "v3_priv_key", "Privacy key is missing."),
    ],
)
def test_a_fault_stands_beside_its_field_and_no_secret_comes_back(
    admin: Client, change: dict[str, str], field: str, said: str
) -> None:
    answer = admin.post("/olts/add/", {**NEW, **change})

    assert [said in error for error in answer.context["form"].errors[field]] == [True]
    assert list(answer.context["form"].errors) == [field]
    assert "canary" not in answer.content.decode()
    assert not Olt.objects.exists()


def test_a_device_that_is_already_there_is_named(admin: Client) -> None:
    make_olt("Sur", address="127.0.0.1", port=16100)

    answer = admin.post("/olts/add/", NEW)

    assert answer.context["form"].errors["host"] == ['OLT "Sur" already has address 127.0.0.1 port 16100.']
    assert Olt.objects.count() == 1


def test_what_somebody_else_was_faster_with_is_not_named_either() -> None:
    others = make_olt("Secret", address="127.0.0.1", port=16100, group=OltGroup.objects.create(name="others"))
    problem = EntryProblem(None, f'OLT "{others.name}" already has address 127.0.0.1 port 16100', others.name, "host")
    form = OltDetails({}, scope=OltScope(frozenset()))

    form.refuse(InventoryError([problem]))

    assert form.non_field_errors() == ["This address and port are taken."]


def test_a_device_of_others_is_not_named_and_the_new_one_goes_into_ones_own_group() -> None:
    mine, others = OltGroup.objects.create(name="mine"), OltGroup.objects.create(name="others")
    make_olt("Secret", address="127.0.0.1", port=16100, group=others)
    user, client = make_user(Role.ADMIN), Client(headers={"accept-language": "en"})
    Profile.objects.create(user=user).olt_groups.add(mine)
    client.force_login(user)

    refused = client.post("/olts/add/", {**NEW, "group": mine.id}).content.decode()
    same_name = client.post("/olts/add/", {**NEW, "name": "Secret", "port": "16101", "group": mine.id})
    without_group = client.post("/olts/add/", {**NEW, "port": "16101"})
    client.post("/olts/add/", {**NEW, "port": "16101", "group": mine.id})

    assert same_name.context["form"].errors["name"] == ["This name is taken."]
    assert "This address and port are taken." in refused
    assert "Secret" not in refused
    assert "group" in without_group.context["form"].errors
    assert Olt.objects.get(name="Norte").group == mine


def test_an_olt_out_of_scope_is_not_there() -> None:
    olt, user, client = waiting_olt(), make_user(Role.ADMIN), Client()
    Profile.objects.create(user=user).olt_groups.add(OltGroup.objects.create(name="mine"))
    client.force_login(user)

    assert client.get(f"/olts/add/{olt.id}/").status_code == 404
    assert client.post(f"/olts/add/{olt.id}/jobs/").status_code == 404


def test_a_test_that_failed_says_what_to_do_and_from_where_we_asked(admin: Client) -> None:
    olt = waiting_olt()
    Olt.objects.update(next_probe_at=timezone.now() + timedelta(minutes=1))
    result = {"finding": "silent", "asked_from": "10.9.9.9"}
    probed(olt, ExecutionState.FAILED, failure_kind="timeout", error="no answer", result=result)
    make_leader()

    shown = page(admin, f"/olts/add/{olt.id}/")

    assert "No answer" in shown
    assert 'Technical details: <span class="mono">no answer</span>' in shown
    assert "allow 10.9.9.9 to ask it" in shown
    assert f"/olts/add/{olt.id}/correct/" in shown
    assert 'id="test-again"' in shown


def test_another_test_is_asked_for(admin: Client) -> None:
    olt = waiting_olt()
    later = timezone.now() + timedelta(minutes=5)
    Olt.objects.update(next_probe_at=later)

    admin.post(f"/olts/add/{olt.id}/test/")

    olt.refresh_from_db()
    assert olt.next_probe_at is not None
    assert olt.next_probe_at < later


def test_a_test_under_way_and_an_engine_that_is_not_are_reported(admin: Client) -> None:
    olt = waiting_olt()
    probed(olt, ExecutionState.RUNNING)

    shown = page(admin, f"/olts/add/{olt.id}/step/")

    assert "Contacting " in shown
    assert "Polling stopped." in shown


def test_a_correction_keeps_what_was_not_typed_and_forgets_what_was_found(admin: Client) -> None:
    olt = waiting_olt(address="127.0.0.1", host="127.0.0.1", port=16100, **HUAWEI)

    admin.post(f"/olts/add/{olt.id}/correct/", {"host": "127.0.0.1", "port": "16100", "version": "1"})

    olt.refresh_from_db()
    assert (olt.snmp_version, olt.community.reveal()) == ("1", "canary-7f3a")
    assert (olt.vendor, olt.sys_object_id) == ("", "")
    assert olt.next_probe_at is not None


def test_what_was_found_before_a_correction_is_not_reported_of_what_came_after(admin: Client) -> None:
    olt = waiting_olt(address="127.0.0.1", host="127.0.0.1", port=16100)
    probed(olt, ExecutionState.FAILED, failure_kind="timeout", result={"finding": "silent"})

    admin.post(f"/olts/add/{olt.id}/correct/", {"host": "127.0.0.1", "port": "16100", "version": "2c"})

    assert "No answer" not in page(admin, f"/olts/add/{olt.id}/")


@pytest.mark.parametrize(
    ("object_id", "vendor", "said"),
    [
        ("1.3.6.1.4.1.2011.2.185", "", "not an OLT that Facho can poll"),
        ("1.3.6.1.4.1.99999.1", "generic", "matches no known family"),
    ],
)
def test_a_device_that_is_not_recognised_can_be_named_by_hand(
    admin: Client, object_id: str, vendor: str, said: str
) -> None:
    olt = waiting_olt(sys_object_id=object_id, vendor=vendor)

    shown = page(admin, f"/olts/add/{olt.id}/")
    answer = admin.post(f"/olts/add/{olt.id}/vendor/", {"vendor": "huawei_smartax"})

    assert said in shown
    assert object_id in shown
    assert answer.headers["Location"] == f"/olts/add/{olt.id}/?step=jobs"
    assert Olt.objects.get().vendor == "huawei_smartax"


def test_a_device_that_no_family_knows_can_be_read_as_any_other(admin: Client) -> None:
    olt = waiting_olt(sys_object_id="1.3.6.1.4.1.99999.1", vendor="generic")

    assert "Start polling" in page(admin, f"/olts/add/{olt.id}/?step=jobs")


def test_a_recognised_olt_shows_its_jobs_with_their_cost(admin: Client) -> None:
    olt = waiting_olt(**HUAWEI)

    answer = admin.get(f"/olts/add/{olt.id}/")

    bill, text = answer.context["bill"], answer.content.decode()
    light = next(row for row in bill["rows"] if row["is_live"])
    assert "olt-norte" in text
    assert (light["minimum_seconds"], light["runs_per_hour"]) == (1800, 2)
    assert light["seconds_per_hour"] == 2 * light["cost"].seconds > 0
    assert all(row["is_chosen"] for row in bill["rows"])
    assert bill["fits"]


def test_a_daily_run_is_counted_by_the_day(admin: Client) -> None:
    olt = waiting_olt(**HUAWEI)

    shown = page(admin, f"/olts/add/{olt.id}/jobs/?onus=500&every_inventario=86400&every_descubrimiento=600")

    assert 'data-label="Runs per hour" class="right">1 a day</td>' in shown
    assert 'data-label="Runs per hour" class="right">6</td>' in shown


def test_what_is_left_out_costs_nothing_and_what_does_not_fit_is_said(admin: Client) -> None:
    olt = waiting_olt(**HUAWEI)
    light = {"job_potencia": "on", "every_potencia": "1800"}

    small = admin.get(f"/olts/add/{olt.id}/jobs/", {"onus": "100", **light}).context["bill"]
    large = admin.get(f"/olts/add/{olt.id}/jobs/", {"onus": "20000", **light}).context["bill"]

    assert [row["job"].slug for row in small["rows"] if row["is_chosen"]] == ["potencia"]
    assert small["minutes_per_hour"] < 2
    assert not large["fits"]
    assert large["words"]


def test_chosen_jobs_begin_with_their_first_runs(admin: Client) -> None:
    olt = waiting_olt(**HUAWEI)
    chosen = {"job_descubrimiento": "on", "every_descubrimiento": "600", "job_estado": "on"}
    light = {"job_potencia": "on", "every_potencia": "3600"}
    others = {"every_inventario": "3600", "every_equipo": "600", "every_puertos_pon": "600", "every_interfaces": "300"}

    admin.post(f"/olts/add/{olt.id}/jobs/", {"onus": "500", **others, **chosen, **light})

    nodes = {node.job.slug: node for node in WorkflowNode.objects.select_related("job")}
    assert {slug: node.interval_seconds for slug, node in nodes.items()} == {
        "descubrimiento": 600,
        "estado": 600,
        "potencia": 3600,
    }
    assert nodes["descubrimiento"].run_requested_at is not None
    assert nodes["potencia"].run_requested_at is None
    assert nodes["potencia"].next_run_at is not None
    assert "First data" in page(admin, f"/olts/add/{olt.id}/")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"job_descubrimiento": ""}, "choose that one too"),
        ({"every_potencia": "60"}, "valid choice"),
        ({"job_descubrimiento": "", "job_estado": "", "job_potencia": ""}, "at least one job"),
    ],
)
def test_a_choice_that_cannot_be_is_refused(admin: Client, change: dict[str, str], said: str) -> None:
    olt = waiting_olt(**HUAWEI)
    choice = {"onus": "500", "job_descubrimiento": "on", "job_estado": "on", "job_potencia": "on"}
    paces = {"every_descubrimiento": "300", "every_potencia": "1800", "every_inventario": "3600"}
    others = {"every_equipo": "600", "every_puertos_pon": "600", "every_interfaces": "300"}

    answer = admin.post(f"/olts/add/{olt.id}/jobs/", {**choice, **paces, **others, **change})

    assert said in answer.content.decode()
    assert not WorkflowNode.objects.exists()


def test_the_overview_leads_back_to_what_was_left_undone(admin: Client) -> None:
    olt = waiting_olt()
    make_node(make_olt("Done"))

    shown = page(admin, "/")

    assert f'id="finish-{olt.id}"' in shown
    assert shown.count('id="finish-') == 1
    assert 'id="add-olt"' in shown


def test_an_olt_with_jobs_is_no_longer_changed_by_the_steps(admin: Client) -> None:
    olt = make_olt("Norte", **HUAWEI)
    make_node(olt)

    for path, values in (("vendor", {"vendor": "generic"}), ("correct", NEW), ("jobs", {}), ("test", {})):
        assert admin.post(f"/olts/add/{olt.id}/{path}/", values).headers["Location"] == f"/olts/add/{olt.id}/"

    olt.refresh_from_db()
    assert (olt.vendor, olt.next_probe_at) == ("huawei_smartax", None)
    assert WorkflowNode.objects.count() == 1


def test_a_page_of_the_steps_costs_few_queries(admin: Client, django_assert_max_num_queries: Any) -> None:
    testing, done = waiting_olt(), make_olt("Done")
    for _ in range(5):
        make_node(done)

    with django_assert_max_num_queries(9):
        admin.get(f"/olts/add/{testing.id}/step/")
    with django_assert_max_num_queries(34):
        admin.get(f"/olts/add/{done.id}/step/")


@pytest.mark.parametrize(
    ("finding", "title"),
    [
        ("onus_hidden", "It has ONUs, but does not list them."),
        ("serials_hidden", "It does not show the serials of its ONUs."),
    ],
)
def test_a_test_that_passed_warns_of_what_the_view_hides(admin: Client, finding: str, title: str) -> None:
    olt = waiting_olt(**HUAWEI)
    probed(olt, ExecutionState.SUCCESS, result={"finding": finding})

    shown = page(admin, f"/olts/add/{olt.id}/")

    assert f"<strong>{title}</strong>" in shown
    assert "a view that holds the whole tree (1.3.6.1)" in shown


def test_the_last_step_offers_to_switch_traps_on_and_then_shows_what_to_type(admin: Client) -> None:
    olt = waiting_olt(**HUAWEI)
    make_node(olt)
    make_onu(olt)
    place = f"/olts/add/{olt.id}/"
    assert "Switch traps on" in page(admin, place)

    answer = admin.post("/traps/switch/", {"is_on": "yes", "olt": str(olt.id)})

    assert (answer.headers["Location"], is_switched_on()) == (place, True)
    shown = page(admin, place)
    assert "this OLT has sent none yet" in shown
    assert "snmp-agent trap enable standard" in shown
    OltTraps.objects.create(olt=olt, last_heard_at=timezone.now())
    assert 'id="trap-' not in page(admin, place)


def test_no_traps_are_offered_before_there_is_data(admin: Client) -> None:
    olt = waiting_olt(**HUAWEI)
    make_node(olt)

    assert "Switch traps on" not in page(admin, f"/olts/add/{olt.id}/")


def test_the_address_of_a_stranger_is_filled_in(admin: Client) -> None:
    assert 'value="192.0.2.9"' in page(admin, "/olts/add/?host=192.0.2.9")
    assert "<script>" not in page(admin, "/olts/add/?host=%22%3E%3Cscript%3E")


def test_the_first_data_say_why_no_onu_was_found(admin: Client) -> None:
    olt = waiting_olt(**HUAWEI)
    node = make_node(olt)
    summary = {"onus": 0, "counted_onus": 125}
    fields = {"task_type": "discovery", "failure_kind": "hiddenOnus", "result": summary}
    make_execution(node, ExecutionState.FAILED, **fields)

    assert "Its PON ports count 125 ONUs" in page(admin, f"/olts/add/{olt.id}/")
