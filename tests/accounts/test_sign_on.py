"""Sign-on by OpenID Connect against a provider that really signs: who gets in as what, and what is refused."""

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import pytest
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.test import Client
from pytest_django import Settings

from api.rows import PASSWORD, make_user
from facho.accounts.models import LinkedIdentity
from facho.accounts.roles import Role, role_of
from facho.accounts.scope import scope_of
from facho.api.tokens import create_token
from facho.dashboard.account.sign_on import documents
from facho.dashboard.account.views import make_setup_path
from facho.hosts.models import OltGroup
from servers.openid_provider import CLIENT, CLIENT_SECRET, OpenIdProvider, openid_provider

pytestmark = pytest.mark.django_db
ANA = {"preferred_username": "ana", "email": "ana@example.net", "email_verified": True}


@pytest.fixture(scope="module")
def one_provider() -> Iterator[OpenIdProvider]:
    with openid_provider() as provider:
        yield provider


@pytest.fixture
def provider(one_provider: OpenIdProvider, settings: Settings, tmp_path: Path) -> Iterator[OpenIdProvider]:
    (tmp_path / "secret").write_text(f"{CLIENT_SECRET}\n")
    settings.FACHO_OIDC_ISSUER = one_provider.issuer
    settings.FACHO_OIDC_CLIENT_ID = CLIENT
    settings.FACHO_OIDC_CLIENT_SECRET_FILE = tmp_path / "secret"
    settings.FACHO_SIGN_ON_ROLES = (("admin", "noc-lead"), ("operator", "noc"), ("viewer", "support"))
    documents.clear()
    one_provider.spoil("")
    one_provider.set_person("sub-ana", **ANA, groups=["noc", "staff"])
    yield one_provider
    one_provider.spoil("")


def way_back(client: Client, provider: OpenIdProvider, subject: str = "sub-ana", next_path: str = "") -> str:
    """Begin a sign-on, consent at the provider as somebody, and return the address that leads back."""
    started = client.get(f"/sign-on/?{urlencode({'next': next_path})}")
    assert started.status_code == 302, started.content.decode()
    address = urlsplit(provider.consent(started["Location"], subject))
    return f"{address.path}?{address.query}"


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_what_the_way_back_needs_stays_with_tls_where_it_came_by_tls(
    client: Client, provider: OpenIdProvider, scheme: str
) -> None:
    started = client.get("/sign-on/", secure=scheme == "https")

    cookie = started.cookies["facho_sign_on"]
    assert (bool(cookie["secure"]), cookie["httponly"], cookie["samesite"]) == (scheme == "https", True, "Lax")


def test_somebody_in_a_group_signs_on_as_what_the_group_may(client: Client, provider: OpenIdProvider) -> None:
    answer = client.get(way_back(client, provider, next_path="/onus/"))

    ana = User.objects.get(username="ana")
    assert (answer.status_code, answer["Location"]) == (302, "/onus/")
    assert (role_of(ana), ana.email, ana.has_usable_password()) == (Role.OPERATOR, "ana@example.net", False)
    assert client.get("/").status_code == 200


def test_the_session_ends_in_time_for_groups_to_be_read_again(client: Client, provider: OpenIdProvider) -> None:
    client.get(way_back(client, provider))

    hours = client.session.get_expiry_age() / 3600
    assert 9.9 < hours <= 10


def test_roles_are_read_again_at_every_sign_on(client: Client, provider: OpenIdProvider) -> None:
    client.get(way_back(client, provider))

    provider.set_person("sub-ana", **ANA, groups=["support"])
    client.get(way_back(client, provider))

    assert role_of(User.objects.get(username="ana")) is Role.VIEWER


def test_somebody_removed_from_the_groups_loses_role_and_sessions(client: Client, provider: OpenIdProvider) -> None:
    other = Client()
    other.get(way_back(other, provider))
    assert other.get("/").status_code == 200

    provider.set_person("sub-ana", **ANA, groups=["staff"])
    answer = client.get(way_back(client, provider))

    assert answer.status_code == 403
    assert role_of(User.objects.get(username="ana")) is None
    assert other.get("/").status_code == 302
    assert not Session.objects.exists()


@pytest.mark.parametrize("groups", [["noc"], ["noc", "crew-gone"]])
def test_somebody_removed_from_all_olt_groups_loses_role_sessions_and_tokens(
    client: Client, provider: OpenIdProvider, settings: Settings, groups: list[str]
) -> None:
    settings.FACHO_SIGN_ON_OLT_GROUPS = (("North", "crew-north"), ("Deleted", "crew-gone"))
    OltGroup.objects.create(name="North")
    provider.set_person("sub-ana", **ANA, groups=["noc", "crew-north"])
    other = Client()
    other.get(way_back(other, provider))
    token = create_token(User.objects.get(username="ana"))
    assert (other.get("/").status_code, ask_with(token)) == (200, 200)

    provider.set_person("sub-ana", **ANA, groups=groups)
    answer = client.get(way_back(client, provider))

    assert answer.status_code == 403
    assert role_of(User.objects.get(username="ana")) is None
    assert (other.get("/").status_code, ask_with(token)) == (302, 401)
    assert not Session.objects.exists()


def ask_with(token: str) -> int:
    return Client().get("/api/v1/olts/", headers={"Authorization": f"Bearer {token}"}).status_code


def test_a_disabled_account_stays_outside(client: Client, provider: OpenIdProvider) -> None:
    client.get(way_back(client, provider))
    User.objects.update(is_active=False)

    answer = Client().get(way_back(client, provider))

    assert answer.status_code == 403
    assert client.get(way_back(client, provider)).status_code == 403


@pytest.mark.parametrize("claims", [ANA, {**ANA, "preferred_username": "ANA"}])
def test_nobody_becomes_a_local_person_of_the_same_name_or_address(
    client: Client, provider: OpenIdProvider, claims: dict[str, object]
) -> None:
    local = make_user(Role.ADMIN, "ana", email="ana@example.net")

    provider.set_person("sub-ana", **claims, groups=["support"])
    client.get(way_back(client, provider))

    linked = LinkedIdentity.objects.get().user
    assert (linked.pk != local.pk, linked.username.lower(), role_of(linked)) == (True, "ana-2", Role.VIEWER)
    assert Client().post("/login/", {"username": "ana", "password": PASSWORD})["Location"] == "/"


def test_another_subject_of_the_same_name_is_another_account(client: Client, provider: OpenIdProvider) -> None:
    provider.set_person("sub-other", **ANA, groups=["noc-lead"])
    client.get(way_back(client, provider))
    client.get(way_back(client, provider, "sub-other"))

    roles = {user.username: role_of(user) for user in User.objects.filter(username__startswith="ana")}
    assert roles == {"ana": Role.OPERATOR, "ana-2": Role.ADMIN}


SPOILED = ["signature", "key", "none", "hmac", "expired", "issuer", "audience", "party", "nonce", "future"]


@pytest.mark.parametrize("how", SPOILED)
def test_a_token_that_cannot_be_trusted_lets_nobody_in(client: Client, provider: OpenIdProvider, how: str) -> None:
    provider.spoil(how)

    answer = client.get(way_back(client, provider))

    assert answer.status_code == 403
    assert not User.objects.exists()
    assert "sessionid" not in client.cookies


def test_a_code_is_good_once(client: Client, provider: OpenIdProvider) -> None:
    address = way_back(client, provider)
    sealed = client.cookies["facho_sign_on"].value
    assert client.get(address).status_code == 302

    thief = Client()
    thief.cookies["facho_sign_on"] = sealed

    assert thief.get(address).status_code == 403
    assert "sessionid" not in thief.cookies
    assert client.get(address).status_code == 403


def test_a_way_back_that_began_elsewhere_is_refused(client: Client, provider: OpenIdProvider) -> None:
    """Somebody must not be made to work in another's account."""
    attackers = way_back(Client(), provider)
    way_back(client, provider)

    assert client.get(attackers).status_code == 403
    assert Client().get(attackers).status_code == 403


def test_another_issuer_in_the_answer_is_refused(client: Client, provider: OpenIdProvider) -> None:
    assert client.get(way_back(client, provider) + "&iss=https%3A%2F%2Felsewhere.example").status_code == 403


@pytest.mark.parametrize("next_path", ["https://elsewhere.example/", "//elsewhere.example", "/\\elsewhere.example"])
def test_sign_on_leads_to_our_own_pages_only(client: Client, provider: OpenIdProvider, next_path: str) -> None:
    assert client.get(way_back(client, provider, next_path=next_path))["Location"] == "/"


def test_groups_give_olt_groups(client: Client, provider: OpenIdProvider, settings: Settings) -> None:
    settings.FACHO_SIGN_ON_OLT_GROUPS = (("North", "noc"), ("South", "other"), ("*", "noc-lead"))
    north, _south = OltGroup.objects.create(name="North"), OltGroup.objects.create(name="South")

    client.get(way_back(client, provider))

    assert scope_of(User.objects.get(username="ana")).group_ids == {north.pk}
    provider.set_person("sub-ana", **ANA, groups=["noc", "noc-lead"])
    client.get(way_back(client, provider))
    assert scope_of(User.objects.get(username="ana")).is_everything


@pytest.mark.parametrize("groups", [["support"], ["support", "gone"]])
def test_whoever_has_no_olt_group_does_not_see_all_olts(
    client: Client, provider: OpenIdProvider, settings: Settings, groups: list[str]
) -> None:
    settings.FACHO_SIGN_ON_OLT_GROUPS = (("North", "noc"), ("Deleted", "gone"))
    provider.set_person("sub-ana", **ANA, groups=groups)

    assert client.get(way_back(client, provider)).status_code == 403


def test_groups_are_read_from_the_claims_that_were_chosen(
    client: Client, provider: OpenIdProvider, settings: Settings
) -> None:
    settings.FACHO_OIDC_GROUPS_CLAIM = ("realm_access.roles", "hd", "email")
    settings.FACHO_SIGN_ON_ROLES = (("operator", "ops"), ("viewer", "example.net"), ("admin", "ana@example.net"))
    provider.set_person("sub-a", preferred_username="a", realm_access={"roles": ["ops"]})
    provider.set_person("sub-b", preferred_username="b", hd="example.net")
    provider.set_person("sub-c", preferred_username="c", email="ana@example.net", email_verified=True)
    provider.set_person("sub-d", preferred_username="d", email="ana@example.net")

    statuses = [
        client.get(way_back(client, provider, subject)).status_code for subject in ("sub-a", "sub-b", "sub-c", "sub-d")
    ]

    assert statuses == [302, 302, 302, 403]
    assert [role_of(user) for user in User.objects.filter(identity__isnull=False).order_by("username")] == [
        Role.OPERATOR,
        Role.VIEWER,
        Role.ADMIN,
    ]


def test_a_provider_that_is_away_leaves_the_local_way_in(client: Client, settings: Settings) -> None:
    settings.FACHO_OIDC_ISSUER = "http://127.0.0.1:9"
    documents.clear()
    make_user(Role.ADMIN, "root")

    answer = client.get("/sign-on/")

    assert answer.status_code == 502
    assert 'name="password"' in answer.content.decode()
    assert client.post("/login/", {"username": "root", "password": PASSWORD})["Location"] == "/"


def test_a_provider_that_hangs_is_given_up_and_spared(
    client: Client, provider: OpenIdProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("facho.alerts.http_request.FETCH_SECONDS", 0.3)
    provider.spoil("hanging")

    statuses = [client.get("/sign-on/").status_code for _ in range(2)]

    assert statuses == [502, 502]


def test_a_sign_on_leaves_the_first_setup_open(client: Client, provider: OpenIdProvider) -> None:
    """Else the first viewer would leave the product without an administrator."""
    client.get(way_back(client, provider))

    assert make_setup_path() is not None


def test_somebody_of_a_provider_gets_no_password_of_their_own(client: Client, provider: OpenIdProvider) -> None:
    client.get(way_back(client, provider))
    ana = User.objects.get(username="ana")
    admin = Client()
    admin.force_login(make_user(Role.ADMIN, "root"))

    assert admin.post(f"/settings/people/{ana.pk}/link/").status_code == 404
    assert (
        "signs on through"
        in admin.get(f"/settings/people/{ana.pk}/", headers={"Accept-Language": "en"}).content.decode()
    )
    assert 'name="old_password"' not in client.get("/account/").content.decode()


def test_without_a_provider_there_is_no_such_page(client: Client) -> None:
    assert client.get("/sign-on/").status_code == client.get("/sign-on/back/").status_code == 404
    assert "/sign-on/" not in client.get("/login/").content.decode()


def test_strangers_leave_no_rows(client: Client, provider: OpenIdProvider) -> None:
    client.get("/sign-on/")
    client.get("/sign-on/back/?code=1&state=2")

    assert not Session.objects.exists()
