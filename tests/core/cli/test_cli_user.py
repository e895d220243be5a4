"""`facho user` and `facho token`."""

import io
import json
import sys

import pytest
from cli_runner import Command
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from api.rows import PASSWORD as LOGIN_PASSWORD
from api.rows import make_user
from facho.accounts import factors
from facho.accounts.models import FailedTries, Passkey, SecondFactor
from facho.accounts.roles import CONSOLE, Role, give_role, people, role_of
from facho.accounts.scope import scope_of
from facho.api.models import ApiToken
from facho.api.tokens import verify_token
from facho.core.cli import user as cli_user
from facho.hosts.models import OltGroup

pytestmark = pytest.mark.django_db

PASSWORD = b"correct-horse-9\n"


@pytest.mark.parametrize("role", list(Role))
def test_a_person_gets_the_role_that_was_asked_for(facho: Command, role: Role) -> None:
    done = facho("user", "create", "ana", "--role", role, "--password-stdin", stdin=PASSWORD)

    user = people().get()
    assert (done.status, done.out) == (0, f"user ana created with role {role}\n")
    assert role_of(user) is role
    assert user.is_staff is user.is_superuser is (role is Role.ADMIN)
    assert user.check_password("correct-horse-9")


def test_a_person_may_be_limited_to_olt_groups(facho: Command) -> None:
    north, south = OltGroup.objects.create(name="North"), OltGroup.objects.create(name="South")
    OltGroup.objects.create(name="West")

    done = facho("user", "create", "ana", "--role", "viewer", "--group", "North", "--group", "South", stdin=PASSWORD)

    assert done.status == 0
    assert scope_of(people().get()).group_ids == {north.id, south.id}
    assert LogEntry.objects.get().change_message == "role: viewer, OLT groups: North, South"


def test_an_unknown_olt_group_is_reported_with_those_that_there_are(facho: Command) -> None:
    none = facho("user", "create", "ana", "--role", "viewer", "--group", "Nort", stdin=PASSWORD)
    OltGroup.objects.create(name="North")
    OltGroup.objects.create(name="South")
    some = facho("user", "create", "ana", "--role", "viewer", "--group", "Nort", stdin=PASSWORD)

    assert (none.status, some.status) == (1, 1)
    assert 'no OLT group "Nort". There is none yet.' in none.err
    assert 'no OLT group "Nort". There are: North, South.' in some.err
    assert not people().exists()


def test_a_password_may_be_piped_without_a_word(facho: Command) -> None:
    assert facho("user", "create", "ana", "--role", "viewer", stdin=PASSWORD).status == 0


class Terminal(io.StringIO):
    """Standard input with a person behind it."""

    def isatty(self) -> bool:
        return True


def test_a_person_is_asked_twice_and_must_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter(["correct-horse-9", "correct-horse-8"])
    monkeypatch.setattr(sys, "stdin", Terminal())
    monkeypatch.setattr(cli_user, "getpass", lambda prompt: next(answers))

    assert cli_user.is_interactive()
    with pytest.raises(cli_user.OperatorError, match="differ"):
        cli_user.ask_twice("Password")


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

    assert (done.status, done.err) == (1, 'facho: There is already a user "ana".\n')


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


def test_a_token_ends_within_a_year_unless_reported_otherwise(facho: Command) -> None:
    person(Role.VIEWER)

    facho("token", "create", "ana")
    facho("token", "create", "ana", "--days", "7", "--name", "Grafana")

    days = [(token.name, (token.expires_at - timezone.now()).days) for token in ApiToken.objects.order_by("id")]
    assert days == [("", 364), ("Grafana", 6)]
    assert facho("token", "create", "ana", "--days", "4000").status == 2


def test_a_token_of_a_group_shows_its_olts_alone(facho: Command) -> None:
    person(Role.VIEWER)
    OltGroup.objects.create(name="North")

    text = facho("token", "create", "ana", "--group", "North").out.strip()
    grant = verify_token(text, now=timezone.now())

    assert grant is not None
    assert scope_of(grant.user).group_ids == {OltGroup.objects.get().id}
    assert facho("token", "create", "ana", "--group", "Nowhere").status == 1


def test_tokens_are_listed_and_revoked(facho: Command) -> None:
    person(Role.VIEWER)
    facho("token", "create", "ana", "--name", "Grafana")
    token = ApiToken.objects.get()

    listed = facho("token", "list", "--json").out

    assert '"name": "Grafana"' in listed
    assert token.digest not in listed
    assert facho("token", "revoke", str(token.id)).status == 0
    assert facho("token", "revoke", str(token.id)).status == 1
    assert not ApiToken.objects.exists()


def test_people_are_listed_without_the_console(facho: Command) -> None:
    facho("user", "create", "ana", "--role", "operator", stdin=PASSWORD)

    lines = facho("user", "list").out.splitlines()

    assert [line.split()[:2] for line in lines] == [["NAME", "ROLE"], ["ana", "operator"]]


def test_an_account_is_closed_and_opened(facho: Command) -> None:
    person(Role.ADMIN, "eva")
    user = person(Role.OPERATOR)

    assert facho("user", "disable", "ana").status == 0
    assert role_of(User.objects.get(pk=user.pk)) is None
    assert facho("user", "enable", "ana").status == 0
    assert facho("user", "role", "ana", "viewer").status == 0
    assert role_of(User.objects.get(pk=user.pk)) is Role.VIEWER


def test_the_last_administrator_stays(facho: Command) -> None:
    person(Role.ADMIN)

    assert facho("user", "disable", "ana").status == 1
    assert facho("user", "role", "ana", "viewer").status == 1
    person(Role.ADMIN, "eva")
    assert facho("user", "disable", "ana").status == 0


def test_a_new_password_obeys_the_rules_and_ends_all_waits(facho: Command) -> None:
    person(Role.ADMIN)
    FailedTries.objects.create(key="x", failures=99, failed_at=timezone.now())

    assert facho("user", "password", "ana", "--password-stdin", stdin=b"short\n").status == 1
    assert FailedTries.objects.exists()
    assert facho("user", "password", "ana", "--password-stdin", stdin=PASSWORD).status == 0
    assert people().get().check_password("correct-horse-9")
    assert not FailedTries.objects.exists()


def test_what_is_done_to_accounts_is_written_down_without_secrets(facho: Command) -> None:
    person(Role.ADMIN, "eva")
    facho("user", "create", "ana", "--role", "viewer", stdin=PASSWORD)
    facho("user", "role", "ana", "operator")
    facho("user", "password", "ana", "--password-stdin", stdin=PASSWORD)
    facho("token", "create", "ana")

    written = LogEntry.objects.order_by("id").values_list("user__username", "change_message")

    assert list(written) == [
        (CONSOLE, "role: viewer"),
        (CONSOLE, "role: viewer → operator"),
        (CONSOLE, "password: changed"),
        (CONSOLE, ""),
    ]


def person(role: Role, name: str = "ana") -> User:
    user = User.objects.create_user(name)
    give_role(user, role)
    return user


def test_the_console_is_the_way_back_in_without_a_second_factor(facho: Command) -> None:
    factors.begin(make_user(Role.ADMIN, "ana"))

    outcomes = [facho("user", "reset-factors", "ana").status for _ in range(2)]

    assert outcomes == [0, 1]
    assert not SecondFactor.objects.exists()


def test_a_person_is_logged_out_everywhere_at_the_console(facho: Command) -> None:
    make_user(Role.ADMIN, "ana")
    windows = [Client(headers={"user-agent": f"{word}/1.0"}) for word in ("Firefox", "curl")]
    for window in windows:
        window.post("/login/", {"username": "ana", "password": LOGIN_PASSWORD})

    shown = json.loads(facho("user", "sessions", "ana", "--json").out)
    ended = facho("user", "end-sessions", "ana")

    assert [(row["browser"], row["way"]) for row in shown] == [("curl", "password"), ("Firefox", "password")]
    assert ended.status == 0
    assert [window.get("/").status_code for window in windows] == [302, 302]
    assert LogEntry.objects.get().change_message == "sessions: 2 → 0"
    assert facho("user", "end-sessions", "nobody").status == 1


def test_the_console_resets_passkeys_too(facho: Command) -> None:
    user = make_user(Role.ADMIN, "ana")
    Passkey.objects.create(user=user, name="x", host="x", digest="x", credential=b"", created_at=timezone.now())

    assert facho("user", "reset-factors", "ana").status == 0
    assert not Passkey.objects.exists()
