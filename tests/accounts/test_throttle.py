"""Whoever guesses has to wait, longer each time, and nobody for ever."""

from datetime import timedelta

import pytest
from django.http import HttpRequest, HttpResponse

from facho.accounts import throttle
from facho.accounts.models import FailedTries
from facho.accounts.throttle import (
    FREE,
    KNOWN_COOKIE,
    LONGEST_WAIT,
    Guess,
    LoginTries,
    Tries,
    address_of,
    remember_browser,
    wait_after,
)
from factories import NOW

SECOND = timedelta(seconds=1)
ACCOUNT = Guess.LOGIN_OF_ACCOUNT


def tries(about: str = "ana", address: str = "192.0.2.7", guess: Guess = ACCOUNT) -> Tries:
    return Tries(guess, address, about)


def request_from(address: str) -> HttpRequest:
    request = HttpRequest()
    request.META["REMOTE_ADDR"] = address
    return request


def test_waits_double_up_to_a_quarter_of_an_hour() -> None:
    free = FREE[ACCOUNT]

    waits = [wait_after(ACCOUNT, failures) // SECOND for failures in range(free - 1, free + 5)]

    assert waits == [0, 1, 2, 4, 8, 16]
    assert wait_after(ACCOUNT, 10**9) == LONGEST_WAIT


@pytest.mark.parametrize(
    ("address", "counted"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
        ("", "unknown"),
        ("nonsense", "unknown"),
    ],
)
def test_a_household_is_one_address(address: str, counted: str) -> None:
    assert address_of(request_from(address)) == counted


@pytest.mark.django_db
def test_who_waited_may_try_once_more() -> None:
    for _ in range(FREE[ACCOUNT]):
        assert not tries().count(NOW)

    assert tries().count(NOW) == SECOND
    assert tries().count(NOW + SECOND / 2) == SECOND / 2
    assert not tries().count(NOW + SECOND)
    assert tries().count(NOW + SECOND) == 2 * SECOND


@pytest.mark.django_db
def test_another_account_and_another_address_do_not_wait() -> None:
    for _ in range(FREE[ACCOUNT] + 1):
        tries().count(NOW)

    assert not tries(about="eva").count(NOW)
    assert not tries(address="192.0.2.8").count(NOW)


@pytest.mark.django_db
def test_an_hour_of_peace_forgets_everything() -> None:
    for _ in range(FREE[ACCOUNT]):
        tries().count(NOW)

    assert not tries().count(NOW + timedelta(hours=1))
    assert FailedTries.objects.get().failures == 1


@pytest.mark.django_db
def test_a_clock_that_was_set_back_adds_no_wait() -> None:
    for _ in range(FREE[ACCOUNT]):
        tries().count(NOW)

    assert tries().load_wait(NOW - timedelta(days=1)) == SECOND


@pytest.mark.django_db
def test_who_gets_in_does_not_clear_the_way_for_guessing_others() -> None:
    office = request_from("192.0.2.7")
    for number in range(FREE[Guess.LOGIN_FROM_ADDRESS] - 1):
        LoginTries.of(f"guess-{number}", office).count(NOW)

    own = LoginTries.of("ana", office)
    assert not own.count(NOW)
    own.succeed(NOW)

    assert not LoginTries.of("eva", office).count(NOW)
    assert LoginTries.of("ida", office).count(NOW) == SECOND


@pytest.mark.django_db
def test_who_gets_in_many_times_at_once_does_not_make_guesses_forgotten() -> None:
    office = request_from("192.0.2.7")
    free = FREE[Guess.LOGIN_FROM_ADDRESS]
    for number in range(free - 4):
        LoginTries.of(f"guess-{number}", office).count(NOW)

    at_once = [LoginTries.of("ana", office) for _ in range(4)]
    assert not any(own.count(NOW) for own in at_once)
    for own in at_once:
        own.succeed(NOW)

    waits = [LoginTries.of(f"more-{number}", office).count(NOW) for number in range(5)]
    assert waits == [timedelta(0)] * 4 + [SECOND]


@pytest.mark.parametrize("name", ["ADMIN", " admin ", "\uff41dmin", "\u00aadmin"])
def test_a_name_is_counted_as_the_login_reads_it(name: str) -> None:
    office = request_from("192.0.2.7")

    assert LoginTries.of(name, office) == LoginTries.of("admin", office)


@pytest.mark.django_db
def test_a_right_password_after_a_wait_starts_no_other_wait() -> None:
    office = request_from("192.0.2.7")
    for number in range(FREE[Guess.LOGIN_FROM_ADDRESS]):
        LoginTries.of(f"guess-{number}", office).count(NOW)
    later = NOW + SECOND
    own = LoginTries.of("ana", office)

    assert not own.count(later)
    own.succeed(later)

    assert not LoginTries.of("ana", office).count(later)


@pytest.mark.django_db
def test_neither_names_nor_passwords_typed_as_names_are_stored() -> None:
    LoginTries.of("hunter2-typed-as-name", request_from("192.0.2.7")).count(NOW)

    assert "hunter2" not in str(list(FailedTries.objects.values()))


@pytest.mark.django_db
def test_many_addresses_do_not_fill_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(throttle, "MOST_ROWS", 20)
    monkeypatch.setattr(throttle, "MADE_ROOM", 5)

    for number in range(100):
        tries(address=f"192.0.2.{number}").count(NOW + number * SECOND)

    assert FailedTries.objects.count() <= 20
    assert FailedTries.objects.order_by("-failed_at")[0].failed_at == NOW + 99 * SECOND


@pytest.mark.django_db
def test_guessing_from_many_addresses_waits_except_in_a_browser_that_is_known() -> None:
    answer = HttpResponse()
    remember_browser(answer, "Ana")
    own, strange = request_from("198.51.100.9"), request_from("198.51.100.9")
    own.COOKIES[KNOWN_COOKIE] = answer.cookies[KNOWN_COOKIE].value
    strange.COOKIES[KNOWN_COOKIE] = own.COOKIES[KNOWN_COOKIE][:-1] + "x"

    for number in range(FREE[Guess.LOGIN_FROM_ANYWHERE]):
        assert not LoginTries.of("ana", request_from(f"192.0.2.{number}")).count(NOW)

    assert LoginTries.of("ana", request_from("192.0.2.99")).count(NOW) == SECOND
    assert LoginTries.of("ana", strange).count(NOW) == SECOND
    assert not LoginTries.of("eva", strange).count(NOW)
    assert not LoginTries.of("ana", own).count(NOW)
    assert wait_after(Guess.LOGIN_FROM_ANYWHERE, 10**9) == timedelta(minutes=1)


def test_a_name_is_cut_before_it_is_normalised() -> None:
    """The time of normalising grows with the square of the length: 120 kB of marks took 12 s."""
    long, cut = ("\u0315\u0300" * count for count in (10**7, 75))
    request = request_from("192.0.2.7")

    assert LoginTries.of(long, request) == LoginTries.of(cut, request)
