"""One code of a second factor, sent by several at the same moment, lets one of them in."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from django.db import connections
from django.test import Client
from django.utils import timezone

from accounts.test_factors import code_now, log_in, make_factor
from api.rows import make_user
from facho.accounts.models import RecoveryCode, SecondFactor
from facho.accounts.roles import Role

pytestmark = pytest.mark.django_db(transaction=True)
# As many as may try before a wrong code makes anybody wait.
AT_ONCE = 4
ROUNDS = 5


@pytest.mark.parametrize("kind", ["app", "recovery"])
def test_of_several_at_once_one_gets_in(kind: str) -> None:
    user = make_user(Role.ADMIN, "ana")
    recovery_codes = make_factor(user, timezone.now())
    entered = []

    for number in range(ROUNDS):
        # A step after the last accepted one is what the app shows next.
        SecondFactor.objects.update(last_step=0)
        entered.append(at_once(code_now(user) if kind == "app" else recovery_codes[number]))

    assert entered == [1] * ROUNDS
    assert RecoveryCode.objects.count() == (10 if kind == "app" else 10 - ROUNDS)


def at_once(code: str) -> int:
    """Send a code as several who know the password; return how many got in."""
    clients = [Client() for _number in range(AT_ONCE)]
    assert {log_in(client) for client in clients} == {"/login/second/"}
    barrier = Barrier(AT_ONCE)

    def send(client: Client) -> bool:
        try:
            barrier.wait(timeout=30)
            client.post("/login/second/", {"code": code})
            return "_auth_user_id" in client.session
        finally:
            connections.close_all()

    with ThreadPoolExecutor(AT_ONCE) as pool:
        return sum(pool.map(send, clients))
