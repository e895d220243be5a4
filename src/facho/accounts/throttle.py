"""Throttles guessing of passwords and tokens, longer at each failure, with no service but the database.

A try is counted before it is judged, so that many at once are no way around; one that was right is taken back.
"""

import logging
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from ipaddress import IPv6Address, IPv6Network, ip_address
from unicodedata import normalize

from django.db import IntegrityError
from django.db.models import F
from django.http import HttpRequest, HttpResponse
from django.utils.crypto import constant_time_compare, salted_hmac

from facho.accounts.models import FailedTries

logger = logging.getLogger(__name__)

FIRST_WAIT = timedelta(seconds=1)
# Long enough that nothing can be guessed, short enough not to lock users out of their own network.
LONGEST_WAIT = timedelta(minutes=15)
# Limits attackers with many addresses, and also users with the right password in a new browser.
LONGEST_WAIT_ANYWHERE = timedelta(minutes=1)
FORGOTTEN_AFTER = timedelta(hours=1)
# Many addresses or names cannot fill the disk; the oldest are dropped.
MOST_ROWS = 10_000
MADE_ROOM = 1_000
# The IPv6 prefix of one household or office counts as one address.
IPV6_PREFIX = 64
# How long a browser is remembered after a login.
KNOWN_COOKIE = "facho_known"
KNOWN_FOR = timedelta(days=180)
# Retries after concurrent updates; after that many, the wait of the others applies.
RACES = 5
# As long as the column of names.
LONGEST_NAME = 150


class Guess(StrEnum):
    LOGIN_OF_ACCOUNT = "login-of-account"
    LOGIN_FROM_ADDRESS = "login-from-address"
    LOGIN_FROM_ANYWHERE = "login-from-anywhere"
    CODE_OF_ACCOUNT = "code-of-account"
    TOKEN_FROM_ADDRESS = "token-from-address"  # noqa: S105 a kind


# Failures without a wait: people mistype, and an office shares an address.
FREE = {
    Guess.LOGIN_OF_ACCOUNT: 5,
    Guess.LOGIN_FROM_ADDRESS: 20,
    Guess.LOGIN_FROM_ANYWHERE: 50,
    # Of a million codes three are right at a time; an attacker here already has the password.
    Guess.CODE_OF_ACCOUNT: 5,
    Guess.TOKEN_FROM_ADDRESS: 20,
}


def wait_after(guess: Guess, failures: int) -> timedelta:
    """Return the wait after that many failures: none, then one second, doubling each time."""
    beyond = failures - FREE[guess]
    if beyond < 0:
        return timedelta(0)
    longest = LONGEST_WAIT_ANYWHERE if guess is Guess.LOGIN_FROM_ANYWHERE else LONGEST_WAIT
    return min(FIRST_WAIT * int(2 ** min(beyond, 20)), longest)


@dataclass(frozen=True, slots=True)
class Tries:
    """Attempts of one kind from one source; `about` is the account where it matters."""

    guess: Guess
    address: str
    about: str = ""

    @property
    def key(self) -> str:
        """A digest: people type passwords into the user name field."""
        return salted_hmac("facho.accounts.throttle", f"{self.guess}\n{self.address}\n{self.about}").hexdigest()

    def load_wait(self, now: datetime) -> timedelta:
        """Return how long the next attempt must wait; one query."""
        return self._wait(_load(self.key, now), now)

    def count(self, now: datetime) -> timedelta:
        """Count an attempt; if it must wait, return how long and count nothing."""
        for _race in range(RACES):
            row = _load(self.key, now)
            if wait := self._wait(row, now):
                return wait
            if _count_one_more(self.key, row, now):
                self._log((row.failures if row else 0) + 1)
                return timedelta(0)
        return FIRST_WAIT

    def take_back(self, now: datetime) -> None:
        """Uncount the last attempt, which succeeded; the time is set, since many successes would move it too far."""
        over = now - LONGEST_WAIT
        FailedTries.objects.filter(key=self.key, failures__gt=0).update(failures=F("failures") - 1, failed_at=over)

    def forget(self) -> None:
        FailedTries.objects.filter(key=self.key).delete()

    def _wait(self, row: FailedTries | None, now: datetime) -> timedelta:
        if row is None:
            return timedelta(0)
        whole = wait_after(self.guess, row.failures)
        # A failure ahead of now was written before the clock was set back.
        return min(max(row.failed_at + whole - now, timedelta(0)), whole)

    def _log(self, failures: int) -> None:
        """Log attempts that cause a wait, so rarely: an attempt that must wait is neither counted nor logged."""
        if wait := wait_after(self.guess, failures):
            logger.warning(
                "tries.throttled guess=%s address=%s failures=%s wait_seconds=%.0f",
                self.guess,
                self.address,
                failures,
                wait.total_seconds(),
            )


@dataclass(frozen=True, slots=True)
class LoginTries:
    """Login attempts to one account from one address; `shared` counters include those of others."""

    of_account: Tries
    # From the address to any account, and to the account from anywhere.
    shared: tuple[Tries, ...]

    @classmethod
    def of(cls, username: str, request: HttpRequest) -> "LoginTries":
        """Return the counters of a request; it makes no difference whether the account exists.

        A browser that logged in to the account before does not wait for failures from elsewhere: guessing from many
        addresses slows strangers down, but cannot lock the user out.
        """
        address, name = address_of(request), _plain_name(username)
        from_address = Tries(Guess.LOGIN_FROM_ADDRESS, address)
        anywhere = () if _is_known(request, name) else (Tries(Guess.LOGIN_FROM_ANYWHERE, "anywhere", name),)
        return cls(Tries(Guess.LOGIN_OF_ACCOUNT, address, name), (from_address, *anywhere))

    def count(self, now: datetime) -> timedelta:
        """Count an attempt; if it must wait, return how long. The account is checked first: it waits alone."""
        wait = max(tries.load_wait(now) for tries in self.shared) or self.of_account.count(now)
        return wait or max(tries.count(now) for tries in self.shared)

    def succeed(self, now: datetime) -> None:
        """Reset the account's failures; those of others stay."""
        self.of_account.forget()
        for tries in self.shared:
            tries.take_back(now)


def remember_browser(answer: HttpResponse, username: str) -> None:
    """Set a cookie that proves this account logged in here before; it grants no access."""
    mark = _mark(_plain_name(username))
    age = int(KNOWN_FOR.total_seconds())
    answer.set_signed_cookie(KNOWN_COOKIE, mark, salt=KNOWN_COOKIE, max_age=age, httponly=True, samesite="Lax")


def address_of(request: HttpRequest) -> str:
    """Return the client's address as the web server knows it: only trusted proxies may set it."""
    try:
        ip = ip_address(request.META.get("REMOTE_ADDR", ""))
    except ValueError:
        return "unknown"
    if isinstance(ip, IPv6Address):
        ip = ip.ipv4_mapped or IPv6Network((ip, IPV6_PREFIX), strict=False).network_address
    return str(ip)


def forget_all_tries() -> None:
    """Reset all waits: a person at the console is never locked out."""
    FailedTries.objects.all().delete()


def _is_known(request: HttpRequest, name: str) -> bool:
    mark = request.get_signed_cookie(KNOWN_COOKIE, default="", salt=KNOWN_COOKIE, max_age=KNOWN_FOR)
    return constant_time_compare(mark or "", _mark(name))


def _mark(name: str) -> str:
    return salted_hmac("facho.accounts.known-browser", name).hexdigest()


def _plain_name(username: str) -> str:
    """Normalise a user name as the login does, cut first: normalising takes quadratic time."""
    return normalize("NFKC", username[:LONGEST_NAME]).strip().casefold()[:LONGEST_NAME]


def _load(key: str, now: datetime) -> FailedTries | None:
    return FailedTries.objects.filter(key=key, failed_at__gt=now - FORGOTTEN_AFTER).first()


def _count_one_more(key: str, row: FailedTries | None, now: datetime) -> bool:
    """Store the attempt unless another one was counted since the row was read."""
    if row is not None:
        as_read = FailedTries.objects.filter(pk=row.pk, failures=row.failures, failed_at=row.failed_at)
        return bool(as_read.update(failures=row.failures + 1, failed_at=now))
    forgotten = FailedTries.objects.filter(key=key, failed_at__lte=now - FORGOTTEN_AFTER)
    if forgotten.update(failures=1, failed_at=now):
        return True
    if FailedTries.objects.count() >= MOST_ROWS:
        oldest = FailedTries.objects.order_by("failed_at").values_list("pk", flat=True)[:MADE_ROOM]
        FailedTries.objects.filter(pk__in=list(oldest)).delete()
    try:
        return FailedTries.objects.get_or_create(key=key, defaults={"failures": 1, "failed_at": now})[1]
    except IntegrityError:
        # Another attempt made the row, succeeded and deleted it, between our insert and our second look.
        return False
