"""Settings of OLTs: the list, the form, switching, deleting and groups; who may, and what is written down."""

from collections.abc import Iterator

import pytest
from django.contrib.admin.models import CHANGE, LogEntry
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from api.rows import make_execution, make_node, make_olt, make_onu, make_user
from facho.accounts.models import Profile
from facho.accounts.roles import Role
from facho.hosts.models import Olt, OltGroup
from facho.polling.domain.execution_state import ExecutionState

pytestmark = pytest.mark.django_db

PAGES = ("/settings/olts/", "/settings/groups/", "/settings/people/", "/settings/people/add/")


def visitor(role: Role, *groups: OltGroup) -> Client:
    user, client = make_user(role), Client(headers={"accept-language": "en"})
    if groups:
        Profile.objects.create(user=user).olt_groups.set(groups)
    client.force_login(user)
    return client


@pytest.fixture
def admin() -> Client:
    return visitor(Role.ADMIN)


def read(client: Client, address: str) -> str:
    return client.get(address).content.decode()


def filled(olt: Olt, **changes: object) -> dict[str, object]:
    """Write the form as the page shows it, with these changes."""
    shown = {"name": olt.name, "host": "10.0.0.9", "port": olt.port, "snmp_version": "2c", "new_community": "public"}
    return {**shown, **changes}


def last_words() -> Iterator[str]:
    return (row.change_message for row in LogEntry.objects.order_by("-id"))


def test_settings_are_for_administrators_and_maintenance_for_operators_too() -> None:
    olt = make_olt()
    pages = [*PAGES, f"/settings/olts/{olt.id}/", f"/settings/olts/{olt.id}/delete/"]

    for role in (Role.VIEWER, Role.OPERATOR):
        client = visitor(role)
        assert [client.get(page).status_code for page in pages] == [403] * len(pages)
    assert visitor(Role.VIEWER).get("/settings/maintenance/").status_code == 403
    assert visitor(Role.OPERATOR).get("/settings/").headers["location"] == "/settings/maintenance/"
    admin = visitor(Role.ADMIN)
    assert admin.get("/settings/").headers["location"] == "/settings/olts/"
    assert [admin.get(page).status_code for page in pages] == [200] * len(pages)


def test_the_bar_leads_to_the_settings_and_the_settings_to_the_administration(admin: Client) -> None:
    overview, settings = read(admin, "/"), read(admin, "/settings/olts/")

    assert 'id="go-settings" href="/settings/"' in overview
    assert 'href="/admin/"' not in overview
    assert 'href="/admin/"' in settings
    assert "go-settings" not in read(visitor(Role.VIEWER), "/")


def test_the_list_is_searched_sorted_and_costs_the_same_with_many(admin: Client) -> None:
    north = OltGroup.objects.create(name="North")
    make_olt("alpha", group=north), make_olt("beta"), make_olt("gamma", enabled=False)

    def names(query: str) -> list[str]:
        page = read(admin, f"/settings/olts/{query}")
        places = {name: page.find(f"<bdi>{name}</bdi>") for name in ("alpha", "beta", "gamma")}
        return sorted((name for name in places if places[name] > 0), key=lambda name: places[name])

    assert names("?sort=-name") == ["gamma", "beta", "alpha"]
    assert names("?q=alp") == ["alpha"]
    assert names(f"?group={north.id}") == ["alpha"]
    assert names("?group=none") == ["beta", "gamma"]
    assert names("?state=disabled") == ["gamma"]
    assert names("?sort=nonsense&state=wrong") == []
    with CaptureQueriesContext(
        connection,
    ) as few:
        names("")
    Olt.objects.bulk_create(
        Olt(name=f"olt {number}", host=f"h{number}", address=f"10.9.{number // 250}.{number % 250 + 1}", group=north)
        for number in range(300)
    )
    with CaptureQueriesContext(connection) as many:
        names("")
    assert len(many) == len(few) <= 12


def test_an_empty_secret_keeps_the_stored_one_and_the_audit_names_no_secret(admin: Client) -> None:
    olt = make_olt("old", host="10.0.0.9", address="10.0.0.9")
    group = OltGroup.objects.create(name="North")

    answer = admin.post(
        f"/settings/olts/{olt.id}/", filled(olt, name="new", new_community="", group=group.id, max_in_flight=2)
    )

    assert answer.status_code == 302
    stored = Olt.objects.get()
    assert (stored.name, stored.group, stored.max_in_flight) == ("new", group, 2)
    assert stored.community.reveal() == "canary-7f3a"
    assert "canary" not in read(admin, f"/settings/olts/{olt.id}/")
    words = next(last_words())
    assert "name: old → new" in words
    assert "North" in words
    admin.post(f"/settings/olts/{olt.id}/", filled(stored, new_community="other-secret", group=group.id))
    assert Olt.objects.get().community.reveal() == "other-secret"
    assert "other-secret" not in " ".join(last_words())


def test_what_was_typed_stays_and_the_wrong_field_is_marked(admin: Client) -> None:
    other, olt = make_olt("other", host="10.0.0.1", address="10.0.0.1"), make_olt("mine")

    page = admin.post(
        f"/settings/olts/{olt.id}/", filled(olt, host="10.0.0.1", packets_per_second=77, name="typed")
    ).content.decode()

    assert 'class="field wrong" id="field-host"' in page
    assert f"OLT &quot;{other.name}&quot; already has address 10.0.0.1" in page
    assert 'value="typed"' in page
    assert 'value="77"' in page
    assert Olt.objects.get(id=olt.id).name == "mine"
    page = admin.post(f"/settings/olts/{olt.id}/", filled(olt, host="no such host!")).content.decode()
    assert "does not resolve" in page
    page = admin.post(f"/settings/olts/{olt.id}/", filled(olt, host="10.0.0.77", new_community="")).content.decode()
    assert 'class="field wrong" id="field-new_community"' in page


def test_an_olt_is_disabled_and_enabled_and_both_are_written_down(admin: Client) -> None:
    olt = make_olt()
    make_execution(make_node(olt))

    page = read(admin, f"/settings/olts/{olt.id}/")
    assert "Its 1 job stops." in page
    assert "stops before its next packet" in page
    for value, is_on in (("no", False), ("yes", True)):
        admin.post(f"/settings/olts/{olt.id}/switch/", {"enabled": value})
        assert Olt.objects.get().enabled is is_on
    assert LogEntry.objects.filter(object_id=olt.id, action_flag=CHANGE).count() == 2


def test_deleting_says_what_is_lost_and_waits_for_a_run(admin: Client) -> None:
    olt = make_olt()
    node = make_node(olt)
    make_onu(olt), make_onu(olt, (0, 1, 0, 1))
    run = make_execution(node)

    page = read(admin, f"/settings/olts/{olt.id}/delete/")
    assert "<li>2 ONUs</li>" in page
    assert "<li>1 execution</li>" in page
    admin.post(f"/settings/olts/{olt.id}/delete/")
    assert Olt.objects.exists()

    type(run).objects.update(status=ExecutionState.SUCCESS, finished_at=run.created_at)
    admin.post(f"/settings/olts/{olt.id}/delete/")
    assert not Olt.objects.exists()
    assert LogEntry.objects.get().object_repr == olt.name


def test_a_limited_administrator_meets_only_their_olts_and_no_people() -> None:
    mine, others = OltGroup.objects.create(name="mine"), OltGroup.objects.create(name="others")
    seen, hidden = make_olt("seen", group=mine), make_olt("secluded", group=others, host="10.1.1.1", address="10.1.1.1")
    client = visitor(Role.ADMIN, mine)

    page = read(client, "/settings/olts/")
    assert "seen" in page
    assert "secluded" not in page
    assert "/settings/people/" not in page
    assert client.get(f"/settings/olts/{hidden.id}/").status_code == 404
    assert [client.get(address).status_code for address in PAGES[1:]] == [403] * 3
    client.post("/settings/olts/", {"olt": [hidden.id], "group": mine.id})
    client.post("/settings/olts/", {"olt": [seen.id], "group": others.id})
    client.post("/settings/olts/", {"olt": [seen.id], "group": ""})
    assert dict(Olt.objects.values_list("name", "group__name")) == {"seen": "mine", "secluded": "others"}
    page = client.post(f"/settings/olts/{seen.id}/", filled(seen, host="10.1.1.1", group=mine.id)).content.decode()
    assert "This address and port are taken." in page


def test_ticked_olts_are_moved_to_a_group_and_each_is_written_down(admin: Client) -> None:
    group = OltGroup.objects.create(name="North")
    olts = [make_olt() for _number in range(3)]

    admin.post("/settings/olts/?sort=-name", {"olt": [olts[0].id, olts[1].id], "group": group.id})

    assert Olt.objects.filter(group=group).count() == 2
    assert LogEntry.objects.count() == 2


def test_groups_are_added_renamed_and_kept_while_somebody_is_limited_to_them(admin: Client) -> None:
    admin.post("/settings/groups/", {"name": "North"})
    group = OltGroup.objects.get()
    make_olt(group=group)
    admin.post("/settings/groups/", {"group": group.id, "name": "Norte"})
    assert OltGroup.objects.get().name == "Norte"
    page = admin.post("/settings/groups/", {"name": "Norte"}).content.decode()
    assert 'class="field wrong"' in page

    profile = Profile.objects.create(user=make_user(Role.VIEWER, "vera"))
    profile.olt_groups.add(group)
    assert "vera" in read(admin, "/settings/groups/")
    admin.post("/settings/groups/", {"group": group.id, "delete": "yes"})
    assert OltGroup.objects.exists()

    profile.olt_groups.clear()
    admin.post("/settings/groups/", {"group": group.id, "delete": "yes"})
    assert Olt.objects.get().group is None
    assert not OltGroup.objects.exists()
