"""Targets: numeric, in one spelling, and silent about their secret."""

from typing import Any

import pytest

from facho.polling.snmp.target import (
    CHEAP,
    LIVE,
    SUPPORTED,
    AuthProtocol,
    Community,
    Patience,
    PrivProtocol,
    SnmpVersion,
    Target,
    UserCredential,
)

SECRET = b"s3cr3t"
KEY = b"s3cr3t-passphrase"


def test_the_community_shows_nowhere() -> None:
    target = Target("192.0.2.1", Community(SECRET))

    assert "s3cr3t" not in repr(target)
    assert "s3cr3t" not in str(target.credential)


@pytest.mark.parametrize("secret", [b"", b"x" * 256])
def test_a_community_has_a_sensible_length(secret: bytes) -> None:
    with pytest.raises(ValueError, match="community"):
        Community(secret)


def test_an_address_has_one_spelling() -> None:
    target = Target("2001:DB8:0::1", Community(SECRET))

    assert target.address == "2001:db8::1"
    assert target.is_ipv6


@pytest.mark.parametrize(
    "wrong",
    [
        {"address": "olt.example.net"},
        {"address": "192.0.2.1", "port": 0},
        {"address": "192.0.2.1", "port": 65_536},
        {"address": "192.0.2.1", "source_address": "::1"},
        {"address": "192.0.2.1", "source_address": "eth0"},
    ],
)
def test_what_cannot_be_sent_to_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"."):
        Target(credential=Community(SECRET), **wrong)  # type: ignore[arg-type]


def test_live_values_are_waited_for_longer_and_asked_for_less_often() -> None:
    assert (CHEAP.timeout_s, CHEAP.tries) == (5.0, 4)
    assert (LIVE.timeout_s, LIVE.tries) == (20.0, 2)


@pytest.mark.parametrize(("timeout_s", "tries"), [(0.0, 1), (-1.0, 1), (1.0, 0)])
def test_patience_is_positive(timeout_s: float, tries: int) -> None:
    with pytest.raises(ValueError, match="patience"):
        Patience(timeout_s, tries)


def test_the_keys_of_a_user_show_nowhere() -> None:
    credential = UserCredential("noc", AuthProtocol.SHA, KEY, PrivProtocol.AES, KEY)

    assert "s3cr3t" not in repr(Target("192.0.2.1", credential, SnmpVersion.V3)) + str(credential)


@pytest.mark.parametrize(
    ("auth", "priv"), [(auth, priv) for auth, privs in SUPPORTED.items() for priv in (None, *privs)] + [(None, None)]
)
def test_every_supported_pair_makes_a_credential(auth: AuthProtocol | None, priv: PrivProtocol | None) -> None:
    credential = UserCredential("noc", auth, KEY, priv, KEY)

    assert (credential.auth_protocol, credential.priv_protocol) == (auth, priv)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"user": ""}, "1 to 32 bytes"),
        ({"user": "\u00f1" * 17}, "1 to 32 bytes"),
        ({"auth_protocol": AuthProtocol.MD5, "auth_key": b"short"}, "authentication key has at least 8"),
        ({"auth_protocol": AuthProtocol.MD5, "priv_protocol": PrivProtocol.DES, "priv_key": b""}, "privacy key has"),
        ({"auth_protocol": None, "priv_protocol": PrivProtocol.DES}, "needs authentication"),
        ({"auth_protocol": AuthProtocol.SHA, "priv_protocol": PrivProtocol.AES_256}, "AES-256 needs a longer digest"),
    ],
)
def test_a_user_that_no_agent_could_have_is_refused(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words) as refused:
        UserCredential(**{"user": "noc", "auth_key": KEY, "priv_key": KEY, **wrong})

    assert "s3cr3t" not in str(refused.value)


@pytest.mark.parametrize(
    ("credential", "version"), [(Community(SECRET), SnmpVersion.V3), (UserCredential("noc"), SnmpVersion.V2C)]
)
def test_a_credential_belongs_to_its_version(credential: Community | UserCredential, version: SnmpVersion) -> None:
    with pytest.raises(ValueError, match="v3 is spoken as a user"):
        Target("192.0.2.1", credential, version)
