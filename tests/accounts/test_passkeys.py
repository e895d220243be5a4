"""Passkeys: whose answer counts, once and at this place alone; made and removed with a proof; reset with the rest."""

import json
import re
from datetime import timedelta
from html import unescape
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.test import Client
from django.utils import timezone
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pytest_django import Settings

from accounts.authenticator import HOST, Authenticator, text_of
from api.rows import PASSWORD, make_user
from facho.accounts import factors, passkeys
from facho.accounts.models import FailedTries, LoginSession, Passkey, RecoveryCode, SecondFactorDuty, WayIn
from facho.accounts.roles import Role

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def place(settings: Settings) -> None:
    settings.ALLOWED_HOSTS = [HOST, "other.localhost", "192.0.2.1", "facho.example.net"]


def visitor(host: str = HOST) -> Client:
    return Client(headers={"host": host, "accept-language": "en"})


def log_in(name: str = "ana") -> Client:
    client = visitor()
    client.force_login(User.objects.get(username=name))
    return client


def options_on(page: str) -> dict[str, Any]:
    found = re.search(r'data-passkey-options="([^"]+)"', page)
    assert found is not None, page
    options: dict[str, Any] = json.loads(unescape(found[1]))
    return options


def add(client: Client, authenticator: Authenticator, name: str = "phone", **proof: str) -> str:
    """Make a passkey as the pages do; returns the page that follows."""
    asked = client.post("/account/passkeys/add/", {"name": name, "password": PASSWORD, **proof})
    answer = authenticator.make(options_on(asked.content.decode()))
    return client.post("/account/passkeys/save/", {"answer": answer}, follow=True).content.decode()


@pytest.fixture
def ana() -> User:
    return make_user(Role.ADMIN, "ana")


@pytest.fixture
def phone(ana: User) -> Authenticator:
    """Ana's passkey, which counts."""
    authenticator = Authenticator(is_counting=True)
    add(log_in(), authenticator)
    assert Passkey.objects.get().user == ana
    return authenticator


def asked(client: Client) -> dict[str, Any]:
    options: dict[str, Any] = client.get("/login/passkey/question/").json()
    return options


def enter(client: Client, answer: str, **values: str) -> int:
    return client.post("/login/passkey/", {"answer": answer, **values}).status_code


def is_in(client: Client) -> bool:
    return client.get("/").status_code == 200


def test_the_first_passkey_brings_recovery_codes_and_is_in_the_audit(ana: User) -> None:
    page = add(log_in(), Authenticator())

    assert len(re.findall(r"<code>[a-z2-9]{5}-[a-z2-9]{5}</code>", page)) == 10
    assert LogEntry.objects.filter(user=ana, object_repr="phone").count() == 1
    row = Passkey.objects.get()
    assert (row.name, row.host, row.used_at) == ("phone", HOST, None)


def test_a_passkey_lets_in_without_name_and_password(phone: Authenticator) -> None:
    client = visitor()

    status = enter(client, phone.use(asked(client)), next="/onus/")

    assert status == 302
    assert is_in(client)
    assert LoginSession.objects.get().way == WayIn.PASSKEY


def test_a_passkey_leads_to_our_own_pages_only(phone: Authenticator) -> None:
    client = visitor()

    answer = client.post("/login/passkey/", {"answer": phone.use(asked(client)), "next": "https://elsewhere.example/"})

    assert answer["Location"] == "/"


def test_a_passkey_is_the_second_factor_of_its_owner(phone: Authenticator) -> None:
    client = visitor()
    first = client.post("/login/", {"username": "ana", "password": PASSWORD})
    options = asked(client)

    answer = client.post("/login/second/", {"answer": phone.use(options)})

    assert (first["Location"], answer["Location"]) == ("/login/second/", "/")
    assert [each["id"] for each in options["allowCredentials"]] == [json.loads(phone.use(options))["id"]]
    assert is_in(client)


LIES: list[dict[str, Any]] = [
    {"origin": "https://elsewhere.example"},
    {"origin": f"https://{HOST}"},
    {"origin": f"http://{HOST}:8000"},
    {"origin": f"http://sub.{HOST}"},
    {"host": "elsewhere.example"},
    {"flags": 1},
    {"flags": 4},
    {"flags": 0},
    {"is_framed": True},
    {"handle": b""},
    {"handle": b"\0" * 8},
]


@pytest.mark.parametrize("lie", LIES, ids=str)
def test_an_answer_from_elsewhere_or_without_its_owner_is_refused(phone: Authenticator, lie: dict[str, Any]) -> None:
    client = visitor()
    options = asked(client)
    for name, value in lie.items():
        setattr(phone, name, value)

    assert enter(client, phone.use(options)) == 403
    assert not is_in(client)
    assert Passkey.objects.get().counter == 0


def test_a_signature_of_another_key_is_refused(phone: Authenticator) -> None:
    client = visitor()
    forged = Authenticator(credential_id=phone.credential_id, handle=phone.handle)

    assert enter(client, forged.use(asked(client))) == 403


def test_a_credential_that_nobody_has_is_refused(phone: Authenticator) -> None:
    client = visitor()

    assert enter(client, Authenticator(handle=phone.handle).use(asked(client))) == 403


def test_an_answer_to_another_question_is_refused(phone: Authenticator) -> None:
    client, other = visitor(), visitor()
    asked(client)

    assert enter(client, phone.use(asked(other))) == 403
    assert enter(visitor(), phone.use(asked(other))) == 403
    assert enter(other, phone.use(asked(other), kind="webauthn.create")) == 403


@pytest.mark.parametrize("is_counting", [True, False])
def test_an_answer_counts_once_even_with_the_cookie_that_was_stolen_along(
    phone: Authenticator, is_counting: bool
) -> None:
    phone.is_counting, phone.counter = is_counting, 0
    client, thief = visitor(), visitor()
    answer = phone.use(asked(client))
    thief.cookies["facho_passkey"] = client.cookies["facho_passkey"].value

    statuses = [enter(client, answer), enter(thief, answer), enter(client, answer)]

    assert statuses == [302, 403, 403]
    assert not is_in(thief)


def test_an_answer_from_before_the_last_one_does_not_count(phone: Authenticator) -> None:
    """Somebody may have kept it while the owner went on."""
    phone.is_counting = False
    kept, owner = visitor(), visitor()
    answer = phone.use(asked(kept))

    assert enter(owner, phone.use(asked(owner))) == 302
    assert enter(kept, answer) == 403


def test_a_copy_is_noticed_by_its_counter(phone: Authenticator, caplog: pytest.LogCaptureFixture) -> None:
    client = visitor()
    phone.counter = 7
    assert enter(client, phone.use(asked(client))) == 302
    copy = visitor()
    phone.counter = 6

    statuses = [enter(copy, phone.use(asked(copy))) for _ in range(3)]

    assert statuses == [403, 403, 302]
    assert "its counter went back: a copy?" in caplog.text


def test_a_counter_that_stops_counting_is_a_copy_too(phone: Authenticator) -> None:
    client = visitor()
    assert enter(client, phone.use(asked(client))) == 302
    phone.counter, phone.is_counting = 0, False

    assert enter(client, phone.use(asked(client))) == 403


def test_a_question_is_good_for_minutes(phone: Authenticator, monkeypatch: pytest.MonkeyPatch) -> None:
    client = visitor()
    answer = phone.use(asked(client))
    monkeypatch.setattr(passkeys, "QUESTION_FOR", timedelta(0))

    assert enter(client, answer) == 403


def test_a_clock_that_was_set_back_does_not_shut_the_owner_out(phone: Authenticator) -> None:
    Passkey.objects.update(used_at=timezone.now() + timedelta(days=400))
    client = visitor()
    answer = phone.use(asked(client))

    assert [enter(client, answer), enter(client, answer)] == [302, 403]


def test_the_passkey_of_another_does_not_finish_a_log_in(phone: Authenticator) -> None:
    make_user(Role.VIEWER, "eva")
    evas = Authenticator()
    add(log_in("eva"), evas)
    client = visitor()
    client.post("/login/", {"username": "ana", "password": PASSWORD})

    client.post("/login/second/", {"answer": evas.use(asked(client))})

    assert not is_in(client)


@pytest.mark.parametrize("change", [{"is_active": False}, {"password": "!"}])
def test_a_closed_account_stays_closed(phone: Authenticator, change: dict[str, Any]) -> None:
    User.objects.update(**change)
    client = visitor()

    assert enter(client, phone.use(asked(client))) == 403


def test_a_passkey_works_under_the_host_name_where_it_was_made(phone: Authenticator) -> None:
    client = visitor("other.localhost")
    phone.origin, phone.host = "http://other.localhost", "other.localhost"

    assert enter(client, phone.use(asked(client))) == 403


@pytest.mark.parametrize(
    ("host", "is_tls", "status"),
    [(HOST, False, 200), ("facho.example.net", True, 200), ("facho.example.net", False, 404), ("192.0.2.1", True, 404)],
)
def test_passkeys_are_offered_where_browsers_have_them(host: str, is_tls: bool, status: int) -> None:
    answer = visitor(host).get("/login/passkey/question/", secure=is_tls)

    assert answer.status_code == status
    if status == 200:
        assert answer.json()["rpId"] == host
        assert bool(answer.cookies["facho_passkey"]["secure"]) is is_tls


def test_strangers_leave_no_rows(phone: Authenticator) -> None:
    Session.objects.all().delete()
    FailedTries.objects.all().delete()
    stranger = visitor()

    assert asked(stranger)["allowCredentials"] == []
    assert enter(stranger, "{}") == enter(stranger, Authenticator().use(asked(stranger))) == 403

    assert not Session.objects.exists()
    assert not FailedTries.objects.exists()


def test_what_is_no_answer_is_refused(phone: Authenticator) -> None:
    client = visitor()
    asked(client)
    right = json.loads(phone.use(asked(client)))
    wrong: list[Any] = [None, 1, [], {}, {"id": 1}, {**right, "rawId": "AA"}, {**right, "response": 7}]
    wrong += [
        {**right, "response": {**right["response"], name: value}} for name in right["response"] for value in ("", 1)
    ]

    assert {enter(client, json.dumps(each)) for each in wrong} == {403}
    assert enter(client, "") == enter(client, "x" * 20_000) == enter(client, "[" * 15_000) == 403


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(data=st.binary(max_size=80), name=st.sampled_from(["attestationObject", "clientDataJSON"]))
def test_no_attestation_makes_an_error(data: bytes, name: str) -> None:
    user = User.objects.filter(username="bytes").first() or make_user(Role.VIEWER, "bytes")
    where = passkeys.PasskeyHost(HOST, f"http://{HOST}")
    options, question = passkeys.ask_to_make(user, "x", where, timezone.now())
    answer = json.loads(Authenticator().make(options))
    answer["response"][name] = text_of(data)

    with pytest.raises(passkeys.PasskeyRefused):
        passkeys.make(user, question, where, json.dumps(answer))


def test_a_question_makes_one_passkey_and_for_its_person_only(ana: User) -> None:
    client = log_in()
    page = client.post("/account/passkeys/add/", {"name": "one", "password": PASSWORD}).content.decode()
    make_user(Role.VIEWER, "eva")
    other = log_in("eva")
    other.cookies["facho_passkey"] = client.cookies["facho_passkey"].value

    other.post("/account/passkeys/save/", {"answer": Authenticator().make(options_on(page))})
    for _ in range(2):
        client.post("/account/passkeys/save/", {"answer": Authenticator().make(options_on(page))})

    assert [(row.user, row.name) for row in Passkey.objects.all()] == [(ana, "one")]


@pytest.mark.parametrize(
    "lie", [{"origin": "https://elsewhere.example"}, {"flags": 1}, {"is_framed": True}, {"host": "x"}]
)
def test_a_passkey_made_elsewhere_or_without_its_owner_is_not_kept(ana: User, lie: dict[str, Any]) -> None:
    add(log_in(), Authenticator(**lie))

    assert not Passkey.objects.exists()
    assert not RecoveryCode.objects.exists()


def test_a_kind_of_key_that_was_not_asked_for_is_not_kept(ana: User) -> None:
    client = log_in()
    page = client.post("/account/passkeys/add/", {"name": "one", "password": PASSWORD}).content.decode()

    client.post("/account/passkeys/save/", {"answer": Authenticator().make(options_on(page), changed={3: -65535})})

    assert not Passkey.objects.exists()


def test_a_credential_of_another_account_is_not_kept(phone: Authenticator) -> None:
    make_user(Role.VIEWER, "eva")

    add(log_in("eva"), Authenticator(credential_id=phone.credential_id))

    assert Passkey.objects.get().user.username == "ana"


def test_adding_and_removing_want_a_proof(phone: Authenticator, ana: User) -> None:
    client, spare = log_in(), Authenticator()
    path = f"/account/passkeys/{Passkey.objects.get().pk}/remove/"

    # With a factor the password is not enough.
    for proof in ({}, {"password": PASSWORD}, {"password": "wrong", "code": "x"}, {"answer": "{}"}):
        page = client.post("/account/passkeys/add/", {"name": "spare", **proof}, follow=True).content.decode()
        client.post(path, proof)
        assert "data-passkey-options" not in page
    assert Passkey.objects.count() == 1

    made = client.post("/account/passkeys/add/", {"name": "spare", "answer": phone.use(asked(client))})
    client.post("/account/passkeys/save/", {"answer": spare.make(options_on(made.content.decode()))})
    assert Passkey.objects.count() == 2
    client.post(path, {"answer": spare.use(asked(client))})
    assert [row.name for row in Passkey.objects.all()] == ["spare"]
    code = factors.renew_recovery_codes(ana)[0]
    client.post(f"/account/passkeys/{Passkey.objects.get().pk}/remove/", {"password": PASSWORD, "code": code})
    assert not Passkey.objects.exists()
    assert not RecoveryCode.objects.exists()


def test_nobody_removes_the_passkey_of_another(phone: Authenticator) -> None:
    make_user(Role.ADMIN, "eva")
    evas = log_in("eva")

    status = evas.post(f"/account/passkeys/{Passkey.objects.get().pk}/remove/", {"password": PASSWORD}).status_code

    assert (status, Passkey.objects.count()) == (404, 1)


def test_a_role_that_must_have_a_factor_may_make_a_passkey_at_the_log_in(ana: User) -> None:
    SecondFactorDuty.objects.create(role="admin")
    client, authenticator = visitor(), Authenticator()
    client.post("/login/", {"username": "ana", "password": PASSWORD})
    assert "Or create a passkey" in client.get("/login/second/").content.decode()

    page = add(client, authenticator)

    assert "Recovery codes" in page
    assert is_in(client)
    # It is asked for from now on, and cannot be removed.
    again = visitor()
    assert again.post("/login/", {"username": "ana", "password": PASSWORD})["Location"] == "/login/second/"
    proof = {"answer": authenticator.use(asked(client))}
    client.post(f"/account/passkeys/{Passkey.objects.get().pk}/remove/", proof)
    assert Passkey.objects.count() == 1


def test_whoever_has_a_factor_makes_no_passkey_with_the_password_alone(phone: Authenticator) -> None:
    client = visitor()
    client.post("/login/", {"username": "ana", "password": PASSWORD})

    answers = [client.post(path, {"name": "x"}) for path in ("/account/passkeys/add/", "/account/passkeys/save/")]

    assert [answer.headers["Location"] for answer in answers] == ["/login/", "/login/"]
    assert Passkey.objects.count() == 1
    assert visitor().post("/account/passkeys/add/", {"name": "x"}).headers["Location"] == "/login/"


def test_an_authenticator_app_is_added_to_a_passkey_with_the_passkey(phone: Authenticator, ana: User) -> None:
    client = log_in()
    client.get("/account/factor/")

    def code() -> str:
        return factors.code_at(factors.begin(ana).key.reveal(), int(timezone.now().timestamp()) // factors.STEP_SECONDS)

    client.post("/account/factor/", {"password": PASSWORD, "code": code()})
    assert not factors.has_app(ana)
    client.post("/account/factor/", {"answer": phone.use(asked(client)), "code": code()})
    assert factors.has_app(ana)


def test_a_reset_removes_passkeys(phone: Authenticator, ana: User) -> None:
    make_user(Role.ADMIN, "root")
    root = log_in("root")
    assert "Reset the second factor" in root.get(f"/settings/people/{ana.pk}/").content.decode()

    root.post(f"/settings/people/{ana.pk}/factor/")

    client = visitor()
    assert not Passkey.objects.exists()
    assert enter(client, phone.use(asked(client))) == 403


def test_somebody_of_a_provider_has_no_passkeys_here(ana: User) -> None:
    User.objects.update(password="!")
    client = log_in()

    assert client.post("/account/passkeys/add/", {"name": "x"}).status_code == 403
    assert "Add a passkey" not in client.get("/account/").content.decode()


def test_ten_are_enough(ana: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passkeys, "MOST_PASSKEYS", 0)

    add(log_in(), Authenticator())

    assert not Passkey.objects.exists()
