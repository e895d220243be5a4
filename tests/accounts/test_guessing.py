"""Thousands of wrong passwords, codes and tokens: throttled, logged a little, and everyone else is answered."""

from collections import Counter
from datetime import timedelta
from types import SimpleNamespace

import pytest
from django.contrib.auth.hashers import MD5PasswordHasher
from django.test import Client, RequestFactory
from django.utils import timezone
from rest_framework.test import APIClient

from accounts.test_factors import code_now, make_factor
from api.rows import PASSWORD, make_user
from facho.accounts import factors
from facho.accounts.models import FailedTries, RecoveryCode
from facho.accounts.roles import Role
from facho.accounts.throttle import FORGOTTEN_AFTER, FREE, Guess, LoginTries, Tries
from facho.api.tokens import create_token

pytestmark = pytest.mark.django_db

MANY = pytest.mark.parametrize("many", [1_000, pytest.param(10_000, marks=pytest.mark.thorough)])
# Whole requests, of which most are pages that ask to wait; the rest of the many asks for the same verdict directly.
REQUESTS = 200
OUTSIDE = "192.0.2.7"
ELSEWHERE = "198.51.100.9"
NOW = timezone.now()


@pytest.fixture(autouse=True)
def stopped_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no wait end during a test, however slow the machine is."""
    clock = SimpleNamespace(now=lambda: NOW)
    monkeypatch.setattr("facho.dashboard.account.views.timezone", clock)
    monkeypatch.setattr("facho.dashboard.account.factors.timezone", clock)
    monkeypatch.setattr("facho.api.shared.permissions.timezone", clock)


@pytest.fixture
def hashings(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The passwords that were hashed; in the product each takes a tenth of a second or more."""
    done: list[str] = []
    encode = MD5PasswordHasher.encode

    def counted(self: MD5PasswordHasher, password: str, salt: str) -> str:
        done.append(password)
        return encode(self, password, salt)

    monkeypatch.setattr(MD5PasswordHasher, "encode", counted)
    return done


def log_in(client: Client, name: str, password: str, address: str) -> int:
    body = {"username": name, "password": password}
    return client.post("/login/", body, REMOTE_ADDR=address).status_code


@MANY
def test_thousands_of_wrong_passwords(
    client: Client, hashings: list[str], caplog: pytest.LogCaptureFixture, many: int
) -> None:
    make_user(Role.ADMIN, "ana")

    answers = Counter(log_in(client, "ana", f"wrong-{number}", OUTSIDE) for number in range(REQUESTS))
    more = LoginTries.of("ana", RequestFactory(REMOTE_ADDR=OUTSIDE).get("/login/"))
    passed = sum(not more.count(NOW) for _ in range(many - REQUESTS))

    assert answers == {200: FREE[Guess.LOGIN_OF_ACCOUNT], 429: REQUESTS - FREE[Guess.LOGIN_OF_ACCOUNT]}
    assert len([each for each in hashings if "wrong" in each]) == FREE[Guess.LOGIN_OF_ACCOUNT]
    assert passed == 0
    assert len([line for line in caplog.messages if "tries.throttled" in line]) == 1
    assert len([line for line in caplog.messages if "login.failed address=192.0.2.7 user=ana" in line]) == 5
    assert FailedTries.objects.count() <= 3


@MANY
@pytest.mark.parametrize("form", ["{:06}", "abcde-{:05}"], ids=["app", "recovery"])
def test_thousands_of_wrong_codes(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, many: int, form: str
) -> None:
    ana = make_user(Role.ADMIN, "ana")
    recovery_code = make_factor(ana, NOW)[0]
    judged: list[str] = []
    check = factors.check
    monkeypatch.setattr(factors, "check", lambda user, code, now: judged.append(code) or check(user, code, now))
    clients = [Client(REMOTE_ADDR=f"198.51.100.{number}") for number in range(10)]
    for client in clients:
        log_in(client, "ana", PASSWORD, client.defaults["REMOTE_ADDR"])

    for number in range(REQUESTS):
        clients[number % 10].post("/login/second/", {"code": form.format(number)})
    passed = sum(not factors.tries_of(ana).count(NOW) for _ in range(many - REQUESTS))
    for code in (code_now(ana, NOW), recovery_code):
        clients[0].post("/login/second/", {"code": code})

    assert (len(judged), passed) == (FREE[Guess.CODE_OF_ACCOUNT], 0)
    assert len([line for line in caplog.messages if "tries.throttled" in line]) == 1
    assert not any("_auth_user_id" in client.session for client in clients)
    assert RecoveryCode.objects.count() == 10


@pytest.mark.parametrize("burst", [1, 5, 12, 14, 16, 100])
def test_whoever_has_the_password_and_patience_guesses_a_code_on_less_than_one_day_in_a_thousand(burst: int) -> None:
    """So many tries, each as soon as it may be, then the hour after which they are forgotten, and again."""
    tries, now, judged = factors.tries_of(make_user(Role.ADMIN, "ana")), NOW, 0

    while now < NOW + timedelta(days=1):
        for _ in range(burst):
            if wait := tries.count(now):
                now += wait
                assert not tries.count(now)
            judged += now < NOW + timedelta(days=1)
        now += FORGOTTEN_AFTER

    # Of a million codes those of three steps are right at a time.
    assert 3 * judged / 10**6 < 1 / 1000


def test_who_waits_is_reported_for_how_long(client: Client, hashings: list[str]) -> None:
    for number in range(FREE[Guess.LOGIN_OF_ACCOUNT] + 4):
        answer = client.post("/login/", {"username": "nobody", "password": f"wrong-{number}"})

    assert (answer.status_code, answer.headers["Retry-After"]) == (429, "1")
    assert "Too many failed attempts." in answer.content.decode()


def test_an_account_that_does_not_exist_is_answered_like_one_that_does(client: Client, hashings: list[str]) -> None:
    make_user(Role.ADMIN, "ana")

    def answers(name: str, address: str) -> list[tuple[int, int]]:
        seen = []
        for number in range(FREE[Guess.LOGIN_OF_ACCOUNT] + 2):
            before = len(hashings)
            seen.append((log_in(client, name, f"wrong-{number}", address), len(hashings) - before))
        return seen

    assert answers("ana", OUTSIDE) == answers("nobody", ELSEWHERE)


def test_an_admin_gets_in_from_elsewhere_while_somebody_guesses(client: Client, hashings: list[str]) -> None:
    make_user(Role.ADMIN, "ana")
    for number in range(50):
        log_in(client, "ana", f"wrong-{number}", OUTSIDE)

    assert log_in(client, "ana", PASSWORD, OUTSIDE) == 429
    assert log_in(client, "ana", PASSWORD, ELSEWHERE) == 302


def test_an_admin_gets_in_where_they_were_before_while_many_guess(client: Client, hashings: list[str]) -> None:
    make_user(Role.ADMIN, "ana")
    assert log_in(client, "ana", PASSWORD, ELSEWHERE) == 302
    client.post("/logout/")

    answers = Counter(log_in(Client(), "ana", "wrong", f"203.0.113.{number}") for number in range(60))

    assert answers == {200: 50, 429: 10}
    assert log_in(Client(), "ana", PASSWORD, ELSEWHERE) == 429
    assert log_in(client, "ana", PASSWORD, ELSEWHERE) == 302


def test_the_admin_has_no_login_of_its_own(client: Client, hashings: list[str]) -> None:
    answer = client.post("/admin/login/?next=/admin/", {"username": "ana", "password": "wrong"})

    assert (answer.status_code, answer.headers["Location"]) == (302, "/login/?next=/admin/")
    assert not hashings


def test_who_may_not_administer_is_reported_so_and_sent_nowhere(client: Client) -> None:
    client.force_login(make_user(Role.OPERATOR))

    answer = client.get("/admin/", follow=True)

    assert answer.status_code == 403
    assert "It needs the role admin, which an administrator can give you." in answer.content.decode()


@MANY
def test_thousands_of_wrong_tokens(caplog: pytest.LogCaptureFixture, many: int) -> None:
    right = create_token(make_user(Role.VIEWER))
    client = APIClient(REMOTE_ADDR=OUTSIDE)

    def ask(token: str) -> int:
        return client.get("/api/v1/pollers/stats/", headers={"Authorization": f"Bearer {token}"}).status_code

    answers = Counter(ask(f"facho_wrong-{number}") for number in range(REQUESTS))
    more = Tries(Guess.TOKEN_FROM_ADDRESS, OUTSIDE)
    passed = sum(not more.count(NOW) for _ in range(many - REQUESTS))

    assert answers == {401: FREE[Guess.TOKEN_FROM_ADDRESS], 429: REQUESTS - FREE[Guess.TOKEN_FROM_ADDRESS]}
    assert passed == 0
    assert len([line for line in caplog.messages if "tries.throttled" in line]) == 1
    assert ask(right) == 200


def test_a_refused_token_says_when_to_come_back() -> None:
    client = APIClient(REMOTE_ADDR=OUTSIDE)
    for _ in range(FREE[Guess.TOKEN_FROM_ADDRESS] + 3):
        answer = client.get("/api/v1/olts/", headers={"Authorization": "Bearer facho_wrong"})

    assert (answer.status_code, answer.headers["Retry-After"]) == (429, "1")
    assert answer.json()["type"] == "urn:facho:problem:throttled"
