"""`facho user create` and `facho token create`."""

import io
import sys

import pytest
from cli_runner import Command
from django.contrib.auth.models import User
from django.utils import timezone

from facho.accounts.roles import Role, role_of
from facho.api.models import ApiToken
from facho.api.tokens import verify_token
from facho.core.cli import secret_input

pytestmark = pytest.mark.django_db

PASSWORD = b"correct-horse-9\n"


@pytest.mark.parametrize("role", list(Role))
def test_a_person_gets_the_role_that_was_asked_for(facho: Command, role: Role) -> None:
    done = facho("user", "create", "ana", "--role", role, "--password-stdin", stdin=PASSWORD)

    user = User.objects.get()
    assert (done.status, done.out) == (0, f"user ana created with role {role}\n")
    assert role_of(user) is role
    assert user.is_staff is user.is_superuser is (role is Role.ADMIN)
    assert user.check_password("correct-horse-9")


def test_a_password_may_be_piped_without_a_word(facho: Command) -> None:
    assert facho("user", "create", "ana", "--role", "viewer", stdin=PASSWORD).status == 0


class Terminal(io.StringIO):
    """Standard input with a person behind it."""

    def isatty(self) -> bool:
        return True


def test_a_person_is_asked_twice_and_must_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter(["correct-horse-9", "correct-horse-8"])
    monkeypatch.setattr(sys, "stdin", Terminal())
    monkeypatch.setattr(secret_input, "getpass", lambda prompt: next(answers))

    assert secret_input.is_interactive()
    with pytest.raises(secret_input.CliError, match="differ"):
        secret_input.ask_twice("Password")


@pytest.mark.parametrize("password", [b"\n", b"short\n", b"12345678901\n", b"ana-ana-ana\n", b""])
def test_a_weak_password_is_refused_and_nobody_is_created(facho: Command, password: bytes) -> None:
    done = facho("user", "create", "ana-ana-ana", "--role", "admin", "--password-stdin", stdin=password)

    assert (done.status, done.out, done.err.count("\n")) == (1, "", 1)
    assert not User.objects.exists()


def test_a_login_name_with_odd_letters_is_refused(facho: Command) -> None:
    done = facho("user", "create", "ana maría", "--role", "admin", "--password-stdin", stdin=PASSWORD)

    assert (done.status, done.err.count("\n")) == (1, 1)


def test_a_known_login_name_is_refused(facho: Command) -> None:
    User.objects.create_user("ana")

    done = facho("user", "create", "ana", "--role", "viewer", "--password-stdin", stdin=PASSWORD)

    assert (done.status, done.err) == (1, 'facho: There already is a user "ana".\n')


def test_a_role_that_does_not_exist_is_wrong_use(facho: Command) -> None:
    assert facho("user", "create", "ana", "--role", "king", stdin=PASSWORD).status == 2


def test_a_token_is_printed_once_and_works(facho: Command) -> None:
    facho("user", "create", "ana", "--role", "operator", "--password-stdin", stdin=PASSWORD)

    text = facho("token", "create", "ana", "--days", "30").out.strip()

    grant = verify_token(text, now=timezone.now())
    assert grant is not None
    assert grant.role is Role.OPERATOR
    assert text not in str(ApiToken.objects.values().get())


def test_a_token_may_not_do_more_than_its_owner(facho: Command) -> None:
    facho("user", "create", "ana", "--role", "viewer", "--password-stdin", stdin=PASSWORD)

    done = facho("token", "create", "ana", "--role", "admin")

    assert done.status == 1
    assert done.err == 'facho: User "ana" has the role "viewer" and no token may do more.\n'
    assert not ApiToken.objects.exists()


def test_a_token_for_nobody_is_refused(facho: Command) -> None:
    done = facho("token", "create", "nobody")

    assert (done.status, done.out) == (1, "")
    assert 'There is no user "nobody"' in done.err


@pytest.mark.parametrize("days", ["0", "-1", "x", "1.5", "99999999"])
def test_days_that_are_no_number_are_wrong_use(facho: Command, days: str) -> None:
    assert facho("token", "create", "ana", f"--days={days}").status == 2
