"""What an operator stores for SNMPv3: what cannot work is refused on save, the rest becomes a credential."""

import pytest
from django.test import Client
from django.urls import reverse

from facho.hosts.inventory import InventoryError, import_olts
from facho.hosts.models import Olt
from facho.hosts.olt_entry import OltEntry
from facho.hosts.store import load_target
from facho.infrastructure.secrets import Secret
from facho.polling.domain.collection import CollectRequest
from facho.polling.domain.execution_state import FailureKind, QueryType
from facho.polling.snmp.errors import AccessDenied
from facho.polling.snmp.target import (
    SUPPORTED,
    AuthProtocol,
    Community,
    Credential,
    PrivProtocol,
    SnmpVersion,
    UserCredential,
)

pytestmark = pytest.mark.django_db

AUTH_KEY = "canary-auth-7f3a"
PRIV_KEY = "canary-priv-7f3a"


def v3_entry(user: str = "noc", auth: str = "none", priv: str = "none") -> OltEntry:
    return OltEntry(
        "centro",
        "192.0.2.1",
        version="3",
        v3_user=user,
        v3_auth_protocol=auth,
        v3_auth_key=Secret(AUTH_KEY),
        v3_priv_protocol=priv,
        v3_priv_key=Secret(PRIV_KEY),
    )


def refusal(entry: OltEntry) -> str:
    with pytest.raises(InventoryError) as refused:
        import_olts([entry])
    assert not Olt.objects.exists()
    return str(refused.value)


def load_credential() -> Credential:
    olt = Olt.objects.get()
    request = CollectRequest(olt.pk, olt.address, olt.port, "", QueryType.GET, ())
    target, _ = load_target(request, definition_in_flight=1)
    assert (target.version is SnmpVersion.V3) == isinstance(target.credential, UserCredential)
    return target.credential


@pytest.mark.parametrize(
    ("auth", "priv"), [(auth, priv) for auth, privs in SUPPORTED.items() for priv in (None, *privs)] + [(None, None)]
)
def test_every_supported_pair_is_stored_and_used(auth: AuthProtocol | None, priv: PrivProtocol | None) -> None:
    import_olts([v3_entry(auth=(auth or "none").lower(), priv=priv or "none")])

    assert load_credential() == UserCredential(
        "noc", auth, AUTH_KEY.encode() if auth else b"", priv, PRIV_KEY.encode() if priv else b""
    )


def test_a_community_is_still_a_community() -> None:
    import_olts([OltEntry("centro", "192.0.2.1", community=Secret("public"))])

    assert load_credential() == Community(b"public")


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        (v3_entry(auth="SHA3"), "authentication protocol is not one of MD5, SHA, SHA-224, SHA-256, SHA-384, SHA-512"),
        (v3_entry(auth="SHA", priv="3DES"), "privacy protocol is not one of DES, AES, AES-192, AES-256, none"),
        (v3_entry(priv="AES"), "privacy needs an authentication protocol"),
        (
            v3_entry(auth="SHA", priv="AES-256"),
            "privacy protocol AES-256 goes only with authentication by SHA-256, SHA-384, SHA-512",
        ),
        (v3_entry(user="\u00f1" * 17), "SNMPv3 user is longer than 32 bytes"),
    ],
)
def test_what_is_not_supported_is_refused_with_what_is(entry: OltEntry, words: str) -> None:
    assert words in refusal(entry)


def test_a_pair_is_refused_with_the_stored_half_too() -> None:
    import_olts([v3_entry(auth="SHA", priv="AES")])

    with pytest.raises(InventoryError, match="AES-192 goes only with"):
        import_olts([OltEntry("centro", "192.0.2.1", v3_priv_protocol="AES-192")])


def test_the_admin_form_refuses_the_same_pair(admin_client: Client) -> None:
    inputs = {
        "name": "centro",
        "host": "127.0.0.1",
        "port": "161",
        "snmp_version": "3",
        "v3_user": "noc",
        "v3_auth_protocol": "MD5",
        "new_v3_auth_key": AUTH_KEY,
        "v3_priv_protocol": "AES-256",
        "new_v3_priv_key": PRIV_KEY,
    }

    page = admin_client.post(reverse("admin:hosts_olt_add"), inputs).content.decode()

    assert "AES-256 goes only with authentication by SHA-256" in page
    assert "canary" not in page
    assert not Olt.objects.exists()


@pytest.mark.parametrize(
    "stored",
    [
        {"snmp_version": "3", "v3_user": "noc", "v3_auth_protocol": "ROT13", "v3_auth_key": AUTH_KEY},
        {"snmp_version": "3", "v3_user": "noc", "v3_auth_protocol": "SHA", "v3_auth_key": "canary"},
        {"snmp_version": "3"},
        {"snmp_version": "2c"},
    ],
)
def test_a_stored_credential_that_cannot_be_used_fails_as_one(stored: dict[str, str]) -> None:
    Olt.objects.create(name="centro", host="192.0.2.1", address="192.0.2.1", **stored)

    with pytest.raises(AccessDenied) as refused:
        load_credential()

    assert refused.value.kind is FailureKind.AUTH
    assert "canary" not in str(refused.value)
