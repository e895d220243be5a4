"""What docs/sign-on.md shows for each provider and directory, by its lines as they stand: who enters, as what."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.contrib.auth.models import User
from django.test import Client
from ldap3 import SchemaInfo
from ldap3.operation.search import parse_filter
from ldap3.protocol.schemas.ad2012R2 import ad_2012_r2_schema
from pytest_django import Settings

from docs.docs_pages import ROOT, blocks
from facho.accounts.roles import Role, role_of
from facho.accounts.sign_on import grants_of
from facho.core.env import read_environment
from facho.dashboard.account.sign_on import documents
from servers.openid_provider import CLIENT, CLIENT_SECRET, OpenIdProvider, openid_provider
from servers.slapd import Slapd, private_slapd

pytestmark = pytest.mark.django_db
FIRST, *PROVIDERS = blocks(ROOT / "docs/sign-on.md", "text")
KEYCLOAK, ENTRA, GOOGLE, OPENLDAP, ACTIVE_DIRECTORY = PROVIDERS
# As each provider writes its ID token, without what is the same everywhere.
ANA: dict[str, Any] = {"preferred_username": "ana", "email": "ana@example.net"}
SIGNED_ON = [
    pytest.param(KEYCLOAK, {**ANA, "groups": ["staff", "noc"]}, Role.OPERATOR, id="keycloak"),
    pytest.param(KEYCLOAK, {**ANA, "groups": ["staff"]}, None, id="keycloak-other-group"),
    pytest.param(ENTRA, {**ANA, "roles": ["facho.viewer"], "groups": ["6f1b"]}, Role.VIEWER, id="entra"),
    pytest.param(ENTRA, {**ANA, "groups": ["facho.admin"]}, None, id="entra-group-of-that-name"),
    pytest.param(GOOGLE, {**ANA, "email_verified": True, "hd": "example.net"}, Role.ADMIN, id="google-person"),
    pytest.param(GOOGLE, {"email": "eva@example.net", "hd": "example.net"}, Role.VIEWER, id="google-domain"),
    pytest.param(GOOGLE, {**ANA, "email_verified": False}, None, id="google-unverified"),
    pytest.param(GOOGLE, {"email": "eva@gmail.com", "email_verified": True}, None, id="google-without-domain"),
]


def settings_of(text: str, settings: Settings, folder: Path) -> None:
    """Set what the lines say; the files that they name are in a folder of the test's."""
    values = dict(line.split("=", 1) for line in text.splitlines())
    environment = read_environment(values)
    assert (environment.problems, environment.unknown_names) == ((), ())
    for name in values:
        is_file = name.endswith("_FILE")
        setattr(settings, name, folder / environment[name].name if is_file else environment[name])


def entered() -> list[Role | None]:
    return [role_of(user) for user in User.objects.filter(identity__isnull=False)]


@pytest.fixture(scope="module")
def provider() -> Iterator[OpenIdProvider]:
    with openid_provider() as provider:
        yield provider


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slapd]:
    with private_slapd(tmp_path_factory.mktemp("slapd")) as directory:
        directory.add_service("facho", "the password of Facho")
        for name in ("ana", "eva"):
            directory.add_person(name, f"{name}'s own password")
        directory.add_group("noc-leads", "ana")
        directory.add_group("staff", "ana", "eva")
        yield directory


@pytest.mark.parametrize(("lines", "claims", "role"), SIGNED_ON)
def test_a_provider_lets_in_as_the_page_says(
    client: Client,
    provider: OpenIdProvider,
    settings: Settings,
    tmp_path: Path,
    lines: str,
    claims: dict[str, Any],
    role: Role | None,
) -> None:
    settings_of(lines, settings, tmp_path)
    settings.FACHO_OIDC_ISSUER, settings.FACHO_OIDC_CLIENT_ID = provider.issuer, CLIENT
    settings.FACHO_OIDC_CLIENT_SECRET_FILE.write_text(CLIENT_SECRET)
    documents.clear()
    provider.set_person("sub-1", **claims)

    back = urlsplit(provider.consent(client.get("/sign-on/")["Location"], "sub-1"))
    status = client.get(f"{back.path}?{back.query}").status_code

    assert (status, entered()) == ((302, [role]) if role else (403, []))


def test_the_directory_of_the_page_lets_in_as_it_says(
    client: Client, directory: Slapd, settings: Settings, tmp_path: Path
) -> None:
    settings_of(OPENLDAP, settings, tmp_path)
    settings.FACHO_LDAP_URL = f"ldaps://localhost:{directory.tls_port}"
    settings.FACHO_LDAP_CA_FILE = directory.ca_file
    settings.FACHO_LDAP_BIND_PASSWORD_FILE.write_text("the password of Facho")

    statuses = [
        client.post("/login/", {"username": name, "password": f"{name}'s own password"}).status_code
        for name in ("eva", "ana")
    ]

    assert statuses == [200, 302]
    assert entered() == [Role.ADMIN]


def test_the_filters_for_active_directory_name_what_its_schema_has(settings: Settings, tmp_path: Path) -> None:
    """The schema is that of a domain controller; none of them runs here."""
    settings_of(ACTIVE_DIRECTORY, settings, tmp_path)
    schema = SchemaInfo.from_json(ad_2012_r2_schema)
    person, group = (f"CN={name},OU=Groups,DC=example,DC=net" for name in ("noc leads", "NOC"))

    by_name, by_member = (
        parse_filter(text, schema, True, None, None, True).elements[0]
        for text in (
            settings.FACHO_LDAP_USER_FILTER.replace("{name}", "ana"),
            settings.FACHO_LDAP_GROUP_FILTER.replace("{dn}", person),
        )
    )

    assert [part.assertion for part in by_name.elements] == [
        {"attr": "objectCategory", "value": b"person"},
        {"attr": "sAMAccountName", "value": b"ana"},
    ]
    assert by_member.assertion["matchingRule"] == "1.2.840.113556.1.4.1941"
    assert grants_of([person]).role is Role.ADMIN
    assert grants_of([group]).role is Role.OPERATOR


def test_the_first_example_gives_roles_and_olt_groups(settings: Settings, tmp_path: Path) -> None:
    settings_of(FIRST, settings, tmp_path)

    north, everywhere = grants_of(["support", "crew-north"]), grants_of(["noc"])

    assert (north.role, north.olt_groups) == (Role.VIEWER, {"North"})
    assert (everywhere.role, everywhere.olt_groups) == (Role.OPERATOR, {"*"})
    assert settings.FACHO_SIGN_ON_HOURS == 10
