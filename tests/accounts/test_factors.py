"""Second factors: codes are those of the standard, good once, not to be guessed; recovery codes, duties and resets."""

import re
from datetime import UTC, datetime, timedelta

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.utils import timezone

from api.rows import PASSWORD, make_user
from facho.accounts import factors
from facho.accounts.factors import STEP_SECONDS, code_at
from facho.accounts.models import RecoveryCode, SecondFactor, SecondFactorDuty
from facho.accounts.roles import Role

NOW = datetime(2030, 5, 6, 12, 0, 0, tzinfo=UTC)
RFC_KEY = "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ"


def step(now: datetime) -> int:
    return int(now.timestamp()) // STEP_SECONDS


def make_factor(user: User, now: datetime = NOW) -> list[str]:
    """Set a factor up an hour before; returns the recovery codes."""
    factor, then = factors.begin(user), now - timedelta(hours=1)
    codes = factors.confirm(factor, code_at(factor.key.reveal(), step(then)), then)
    assert codes is not None
    return codes


def code_now(user: User, now: datetime | None = None) -> str:
    return code_at(SecondFactor.objects.get(user=user).key.reveal(), step(now or timezone.now()))


def log_in(client: Client, name: str = "ana") -> str:
    return client.post("/login/", {"username": name, "password": PASSWORD}).headers["Location"]


@pytest.mark.parametrize(
    ("seconds", "code"), [(59, "287082"), (1111111109, "081804"), (1234567890, "005924"), (20000000000, "353130")]
)
def test_codes_are_those_of_the_standard(seconds: int, code: str) -> None:
    """RFC 6238, appendix B, by the last six digits."""
    assert code_at(RFC_KEY, seconds // STEP_SECONDS) == code


@pytest.mark.django_db
@pytest.mark.parametrize(("off", "is_right"), [(-2, False), (-1, True), (0, True), (1, True), (2, False)])
def test_a_clock_may_be_half_a_minute_off(off: int, is_right: bool) -> None:
    user = make_user(Role.ADMIN, "ana")
    make_factor(user)

    assert factors.check(user, code_now(user, NOW + off * timedelta(seconds=STEP_SECONDS)), NOW) is is_right


@pytest.mark.django_db
def test_a_code_is_good_once_and_none_from_before_it() -> None:
    user = make_user(Role.ADMIN, "ana")
    make_factor(user)
    before = code_now(user, NOW - timedelta(seconds=STEP_SECONDS))

    assert factors.check(user, code_now(user, NOW), NOW)
    assert not factors.check(user, code_now(user, NOW), NOW)
    assert not factors.check(user, before, NOW)


@pytest.mark.django_db
def test_a_recovery_code_is_good_once_and_only_for_its_owner() -> None:
    ana, eva = make_user(Role.ADMIN, "ana"), make_user(Role.ADMIN, "eva")
    first, second = make_factor(ana)[:2]
    make_factor(eva)

    assert not factors.check(eva, first, NOW)
    assert factors.check(ana, first, NOW)
    assert not factors.check(ana, first, NOW)
    assert factors.check(ana, second.replace("-", " ").upper(), NOW)
    assert RecoveryCode.objects.filter(user=ana).count() == 8


@pytest.mark.django_db
def test_neither_the_key_nor_a_recovery_code_is_readable_in_the_database() -> None:
    user = make_user(Role.ADMIN, "ana")
    codes = make_factor(user)

    with connection.cursor() as cursor:
        cursor.execute("SELECT key FROM accounts_secondfactor")
        stored = str(cursor.fetchall()) + str(list(RecoveryCode.objects.values_list("digest", flat=True)))
    key = SecondFactor.objects.get().key.reveal()
    assert key not in stored
    assert not any(code.replace("-", "") in stored for code in codes)


@pytest.mark.django_db
def test_the_password_alone_opens_nothing(client: Client) -> None:
    user = make_user(Role.ADMIN, "ana")
    make_factor(user, timezone.now())

    assert log_in(client) == "/login/second/"
    assert client.get("/").status_code == 302
    assert client.get("/api/v1/olts/").status_code == 401
    assert client.get("/account/").status_code == 302

    answer = client.post("/login/second/", {"code": code_now(user)})
    assert (answer.status_code, answer["Location"]) == (302, "/")
    assert client.get("/").status_code == 200


@pytest.mark.django_db
def test_codes_cannot_be_guessed(client: Client) -> None:
    """Five are free, from wherever; then each waits, and a right one waits as well."""
    user = make_user(Role.ADMIN, "ana")
    codes = make_factor(user, timezone.now())

    for number in range(6):
        other = Client()
        log_in(other)
        other.post("/login/second/", {"code": f"99999{number}"})
    log_in(client)
    page = client.post("/login/second/", {"code": codes[0]}, headers={"Accept-Language": "en"})

    assert "Too many wrong codes" in page.content.decode()
    assert client.get("/").status_code == 302
    assert RecoveryCode.objects.count() == 10


@pytest.mark.django_db
def test_the_second_step_ends_when_the_password_changes_or_the_account_is_closed(client: Client) -> None:
    user = make_user(Role.ADMIN, "ana")
    make_factor(user, timezone.now())
    log_in(client)
    user.set_password("another long password")
    user.save()

    assert client.post("/login/second/", {"code": code_now(user)})["Location"] == "/login/"
    assert Client().get("/login/second/")["Location"] == "/login/"


@pytest.mark.django_db
def test_a_role_that_must_have_one_is_led_to_the_set_up(client: Client) -> None:
    SecondFactorDuty.objects.create(role="admin")
    user = make_user(Role.ADMIN, "ana")
    make_user(Role.VIEWER, "eva")

    assert log_in(Client(), "eva") == "/"
    assert log_in(client) == "/login/second/"
    page = client.get("/login/second/", headers={"Accept-Language": "en"}).content.decode()
    key = re.sub(r"\s", "", re.findall(r"<code>([A-Z2-7 ]+)</code>", page)[0])
    assert (key, client.get("/").status_code) == (SecondFactor.objects.get().key.reveal(), 302)

    codes = client.post("/login/second/", {"code": code_now(user)}).content.decode()
    assert len(re.findall(r"<code>[a-z2-9]{5}-[a-z2-9]{5}</code>", codes)) == 10
    assert client.get("/").status_code == 200


@pytest.mark.django_db
def test_setting_up_and_removing_want_the_password(client: Client) -> None:
    user = make_user(Role.ADMIN, "ana")
    client.force_login(user)
    client.get("/account/factor/")

    client.post("/account/factor/", {"password": "wrong", "code": code_now(user)})
    assert not factors.has_factor(user)
    client.post("/account/factor/", {"password": PASSWORD, "code": code_now(user)})
    assert factors.has_factor(user)

    code = factors.renew_recovery_codes(user)[0]
    client.post("/account/factor/change/", {"password": "wrong", "code": code})
    assert factors.has_factor(user)
    client.post("/account/factor/change/", {"password": PASSWORD, "code": code})
    assert not factors.has_factor(user)


@pytest.mark.django_db
def test_a_required_factor_is_not_removed(client: Client) -> None:
    user = make_user(Role.ADMIN, "ana")
    code = make_factor(user)[0]
    SecondFactorDuty.objects.create(role="admin")
    client.force_login(user)

    client.post("/account/factor/change/", {"password": PASSWORD, "code": code})

    assert factors.has_factor(user)


@pytest.mark.django_db
def test_an_administrator_sets_duties_and_resets_and_both_are_in_the_audit(client: Client) -> None:
    root, ana = make_user(Role.ADMIN, "root"), make_user(Role.OPERATOR, "ana")
    make_factor(ana)
    theirs = Client()
    theirs.force_login(ana)
    client.force_login(root)

    client.post("/settings/people/factors/", {"operator": "1", "admin": "1"})
    client.post("/settings/people/factors/", {"admin": "1"})
    client.post(f"/settings/people/{ana.pk}/factor/")

    assert factors.load_duties() == ["admin"]
    assert not factors.has_factor(ana)
    assert theirs.get("/").status_code == 302
    assert LogEntry.objects.filter(user=root).count() == 4


@pytest.mark.django_db
def test_others_may_do_neither(client: Client) -> None:
    client.force_login(make_user(Role.OPERATOR, "ana"))

    paths = ("/settings/people/factors/", "/settings/people/1/factor/")
    assert [client.post(path).status_code for path in paths] == [403, 403]
