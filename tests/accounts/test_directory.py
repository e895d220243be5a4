"""Sign-on with name and password of an LDAP directory, against Debian's own slapd."""

import socket
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.test import Client
from pytest_django import Settings

from api.rows import PASSWORD, make_user
from facho.accounts import ldap
from facho.accounts.models import FailedTries
from facho.accounts.roles import Role, role_of
from facho.api.tokens import create_token
from facho.hosts.models import OltGroup
from servers.slapd import BASE, GROUPS, MANAGER, MANAGER_PASSWORD, PEOPLE, Slapd, private_slapd, write_certificates

pytestmark = pytest.mark.django_db
SECRET = "ana's own password"


@pytest.fixture(scope="module")
def one_directory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slapd]:
    with private_slapd(tmp_path_factory.mktemp("slapd")) as directory:
        directory.add_person("ana", SECRET)
        directory.add_person("eva", "eva's own password")
        directory.add_group("noc", "ana")
        directory.add_group("staff", "ana", "eva")
        yield directory


@pytest.fixture
def directory(one_directory: Slapd, settings: Settings, tmp_path: Path) -> Slapd:
    (tmp_path / "password").write_text(MANAGER_PASSWORD)
    settings.FACHO_LDAP_URL = f"ldaps://localhost:{one_directory.tls_port}"
    settings.FACHO_LDAP_CA_FILE = one_directory.ca_file
    settings.FACHO_LDAP_BIND_DN = MANAGER
    settings.FACHO_LDAP_BIND_PASSWORD_FILE = tmp_path / "password"
    settings.FACHO_LDAP_USER_BASE, settings.FACHO_LDAP_GROUP_BASE = PEOPLE, GROUPS
    settings.FACHO_SIGN_ON_ROLES = (("operator", f"CN=noc,{GROUPS}"),)
    return one_directory


def log_in(client: Client, name: str = "ana", password: str = SECRET) -> int:
    return client.post("/login/", {"username": name, "password": password}).status_code


@pytest.mark.parametrize("scheme", ["ldaps", "ldap"])
def test_somebody_of_the_directory_logs_in_by_tls(
    client: Client, directory: Slapd, settings: Settings, scheme: str
) -> None:
    if scheme == "ldap":
        settings.FACHO_LDAP_URL = f"ldap://localhost:{directory.port}"

    assert log_in(client) == 302
    ana = User.objects.get(username="ana")
    assert (role_of(ana), ana.email, ana.has_usable_password()) == (Role.OPERATOR, "ana@example.net", False)
    assert 9.9 < client.session.get_expiry_age() / 3600 <= 10


def test_an_anonymous_search_is_enough(client: Client, directory: Slapd, settings: Settings) -> None:
    settings.FACHO_LDAP_BIND_DN, settings.FACHO_LDAP_BIND_PASSWORD_FILE = "", None

    assert log_in(client) == 302


def test_somebody_removed_from_the_group_loses_role_and_sessions(client: Client, directory: Slapd) -> None:
    group = f"cn=noc,{GROUPS}"
    assert log_in(client) == 302

    directory.leave(group, "ana")
    status = log_in(Client())
    directory.join(group, "ana")

    assert status == 200
    assert role_of(User.objects.get(username="ana")) is None
    assert client.get("/").status_code == 302


def test_somebody_removed_from_all_olt_groups_loses_role_sessions_and_tokens(
    client: Client, directory: Slapd, settings: Settings
) -> None:
    settings.FACHO_SIGN_ON_OLT_GROUPS = (("North", f"cn=staff,{GROUPS}"),)
    OltGroup.objects.create(name="North")
    assert log_in(client) == 302
    token = create_token(User.objects.get(username="ana"))

    directory.leave(f"cn=staff,{GROUPS}", "ana")
    status = log_in(Client())
    directory.join(f"cn=staff,{GROUPS}", "ana")

    answer = Client().get("/api/v1/olts/", headers={"Authorization": f"Bearer {token}"})
    assert (status, answer.status_code) == (200, 401)
    assert role_of(User.objects.get(username="ana")) is None
    assert client.get("/").status_code == 302


@pytest.mark.parametrize(
    ("name", "password"),
    [
        ("ana", "wrong"),
        ("eva", "eva's own password"),
        ("nobody", SECRET),
        ("*", SECRET),
        ("ana)(uid=*", SECRET),
        ("a*", SECRET),
        (f"ana,{PEOPLE}", SECRET),
        ("ana\0", SECRET),
    ],
)
def test_nobody_else_gets_in(client: Client, directory: Slapd, name: str, password: str) -> None:
    assert log_in(client, name, password) == 200
    assert not User.objects.exists()


@pytest.mark.parametrize("password", ["", " "])
def test_an_empty_password_is_no_proof(directory: Slapd, password: str) -> None:
    """Servers take a bind without a password for an anonymous one, and answer that it succeeded."""
    assert ldap.identify("ana", password) is None


def test_a_local_name_is_not_asked_of_the_directory(client: Client, directory: Slapd) -> None:
    local = make_user(Role.ADMIN, "ana")

    assert log_in(client, "ANA") == log_in(client) == 200
    assert log_in(client, "ana", PASSWORD) == 302
    assert int(client.session["_auth_user_id"]) == local.pk


def test_a_disabled_account_stays_outside(client: Client, directory: Slapd) -> None:
    log_in(client)
    User.objects.update(is_active=False)

    assert log_in(Client()) == 200


def test_an_account_that_the_directory_locked_stays_outside(client: Client, directory: Slapd) -> None:
    directory.lock("ana")
    status = log_in(client)
    directory.unlock("ana")

    assert (status, log_in(client)) == (200, 302)


def test_an_account_that_the_directory_has_no_more_stays_outside(client: Client, directory: Slapd) -> None:
    password, group = "ida's own password", f"cn=noc,{GROUPS}"
    directory.add_person("ida", password)
    directory.join(group, "ida")
    before = log_in(client, "ida", password)
    directory.remove(f"uid=ida,{PEOPLE}")
    after = log_in(Client(), "ida", password)
    directory.leave(group, "ida")

    assert (before, after) == (302, 200)


def test_guessing_is_slowed_down_as_at_local_accounts(client: Client, directory: Slapd) -> None:
    statuses = [log_in(client, "ana", "wrong") for _ in range(6)]

    assert statuses == [200, 200, 200, 200, 200, 429]
    assert log_in(client) == 429
    assert FailedTries.objects.exists()


def test_a_certificate_of_another_authority_is_refused(
    client: Client, directory: Slapd, settings: Settings, tmp_path: Path
) -> None:
    write_certificates(tmp_path)
    settings.FACHO_LDAP_CA_FILE = tmp_path / "ca.pem"

    assert log_in(client) == 200
    with pytest.raises(ldap.DirectoryAway, match=r"(?i)certificate"):
        ldap.check_directory()


def test_a_certificate_of_another_host_is_refused(directory: Slapd, settings: Settings) -> None:
    settings.FACHO_LDAP_URL = f"ldaps://127.0.0.1:{directory.tls_port}"

    with pytest.raises(ldap.DirectoryAway):
        ldap.check_directory()


def test_a_directory_that_hangs_is_given_up_and_local_people_get_in(
    client: Client, directory: Slapd, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ldap, "STEP_SECONDS", 1)
    monkeypatch.setattr(ldap, "CONNECT_SECONDS", 1)
    make_user(Role.ADMIN, "root")
    with closing(socket.create_server(("127.0.0.1", 0))) as silent:
        settings.FACHO_LDAP_URL = f"ldap://127.0.0.1:{silent.getsockname()[1]}"

        with pytest.raises(ldap.DirectoryAway):
            ldap.identify("ana", SECRET)
        assert log_in(client, "root", PASSWORD) == 302


def test_the_base_is_where_people_are_looked_for(client: Client, directory: Slapd, settings: Settings) -> None:
    settings.FACHO_LDAP_USER_BASE = f"ou=Elsewhere,{BASE}"

    assert log_in(client) == 200
