"""Sessions and their cookies: Secure over TLS, a week long; listed with their use, and ended one by one or all."""

from datetime import timedelta

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from api.rows import PASSWORD, make_user
from facho.accounts import sessions
from facho.accounts.models import LoginSession
from facho.accounts.roles import Role
from facho.accounts.sessions import SEEN_EVERY, load_sessions

pytestmark = pytest.mark.django_db

FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
PHONE = "Mozilla/5.0 (Linux; Android 15) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Mobile Safari/537.36"


def log_in(agent: str = FIREFOX, name: str = "ana", address: str = "192.0.2.7") -> Client:
    client = Client(headers={"user-agent": agent, "accept-language": "en"}, REMOTE_ADDR=address)
    client.post("/login/", {"username": name, "password": PASSWORD})
    return client


def is_in(client: Client) -> bool:
    return client.get("/").status_code == 200


def row_of(client: Client) -> LoginSession:
    return LoginSession.objects.get(session_id=client.session.session_key)


@pytest.fixture
def ana() -> User:
    return make_user(Role.VIEWER, "ana")


@pytest.mark.parametrize("by_tls", [True, False])
def test_cookies_given_over_tls_stay_with_tls(client: Client, ana: User, by_tls: bool) -> None:
    answer = client.post("/login/", {"username": "ana", "password": PASSWORD}, secure=by_tls)

    session, csrf = answer.cookies["sessionid"], answer.cookies["csrftoken"]
    assert bool(session["secure"]) is bool(csrf["secure"]) is by_tls
    assert (session["httponly"], session["samesite"]) == (True, "Lax")
    assert session["max-age"] == timedelta(days=7).total_seconds()


def test_a_closed_account_has_no_session(client: Client, ana: User) -> None:
    client.force_login(ana)

    User.objects.update(is_active=False)

    assert client.get("/").status_code == 302


def test_people_see_where_they_are_logged_in_and_which_window_this_is(ana: User) -> None:
    make_user(Role.VIEWER, "eva")
    desk = log_in()
    log_in(PHONE, address="2001:db8:1:2:3:4:5:6"), log_in(name="eva", address="203.0.113.9")

    page = desk.get("/account/").content.decode()

    shown = [(row.browser, row.address, row.way) for row in load_sessions(ana, timezone.now())]
    assert shown == [
        ("Chrome · Android", "2001:db8:1:2::", "password"),
        ("Firefox · Linux", "192.0.2.7", "password"),
    ]
    assert all(word in page for pair in shown for word in pair[:2])
    assert page.count("this one") == 1
    assert "203.0.113.9" not in page


def test_one_session_is_ended_and_it_is_in_the_audit(ana: User) -> None:
    desk, phone = log_in(), log_in(PHONE)

    desk.post(f"/account/sessions/{row_of(phone).pk}/end/")

    assert (is_in(desk), is_in(phone)) == (True, False)
    assert LogEntry.objects.get().change_message == "session: Chrome · Android, 192.0.2.7 → —"
    assert LoginSession.objects.count() == 1


def test_nobody_ends_a_session_of_another(ana: User) -> None:
    make_user(Role.OPERATOR, "eva")
    anas, evas = log_in(), log_in(name="eva")
    theirs = row_of(anas)

    paths = (
        f"/account/sessions/{theirs.pk}/end/",
        f"/settings/people/{ana.pk}/sessions/end/",
        f"/settings/people/{ana.pk}/sessions/{theirs.pk}/end/",
    )
    assert [evas.post(path).status_code for path in paths] == [404, 403, 403]
    assert is_in(anas)


def test_all_others_are_ended_those_too_that_are_not_listed(ana: User) -> None:
    desk, phone, old = log_in(), log_in(PHONE), Client()
    old.force_login(ana)

    desk.post("/account/sessions/end/")

    assert [is_in(each) for each in (desk, phone, old)] == [True, False, False]
    assert Session.objects.count() == 1


def test_an_administrator_ends_sessions_of_others(ana: User) -> None:
    make_user(Role.ADMIN, "root")
    desk, phone, root = log_in(), log_in(PHONE), log_in(name="root")

    page = root.get(f"/settings/people/{ana.pk}/").content.decode()
    root.post(f"/settings/people/{ana.pk}/sessions/{row_of(phone).pk}/end/")

    assert page.count("Chrome · Android, 192.0.2.7") == 1
    assert [is_in(each) for each in (desk, phone, root)] == [True, False, True]
    root.post(f"/settings/people/{ana.pk}/sessions/end/")
    assert [is_in(each) for each in (desk, root)] == [False, True]
    assert LogEntry.objects.filter(user__username="root").count() == 2


def test_a_new_password_keeps_this_session_with_its_begin_and_ends_the_others(ana: User) -> None:
    desk, phone = log_in(), log_in(PHONE)
    before = row_of(desk)
    new = "another-horse-9"

    desk.post("/account/password/", {"old_password": PASSWORD, "new_password1": new, "new_password2": new})

    assert [is_in(each) for each in (desk, phone)] == [True, False]
    kept = LoginSession.objects.get()
    assert (kept.begun_at, kept.session_id != before.session_id) == (before.begun_at, True)


def test_a_session_of_an_old_password_is_not_listed(ana: User) -> None:
    log_in()

    ana.set_password("another-horse-9")
    ana.save()

    assert load_sessions(ana, timezone.now()) == []


def test_logging_out_leaves_no_row(ana: User) -> None:
    desk = log_in()

    desk.post("/logout/")

    assert not LoginSession.objects.exists()


def test_logging_in_again_in_the_same_browser_is_the_same_session(ana: User) -> None:
    desk = log_in()

    desk.post("/login/", {"username": "ana", "password": PASSWORD})

    assert LoginSession.objects.count() == 1


def age(client: Client, by: timedelta) -> None:
    """Make the last use older, for the database and for this process."""
    LoginSession.objects.update(seen_at=timezone.now() - by)
    sessions._written_at[client.session.session_key or ""] -= by


def writes(client: Client) -> list[str]:
    with CaptureQueriesContext(connection) as captured:
        assert is_in(client)
    reads = ("SELECT", "(SELECT", "SAVEPOINT", "RELEASE")
    return [each["sql"] for each in captured if not each["sql"].startswith(reads)]


def test_the_last_use_is_written_once_in_minutes_with_its_address(ana: User) -> None:
    desk = log_in()
    age(desk, SEEN_EVERY)
    desk.defaults["REMOTE_ADDR"] = "198.51.100.1"

    first, second = writes(desk), writes(desk)

    assert (len(first), second) == (1, [])
    row = row_of(desk)
    assert timezone.now() - row.seen_at < timedelta(minutes=1)
    assert row.address == "198.51.100.1"


def test_a_session_that_another_process_wrote_is_left_alone(ana: User) -> None:
    desk = log_in()
    written = row_of(desk).seen_at
    sessions._written_at.clear()

    assert is_in(desk)

    assert row_of(desk).seen_at == written


def test_a_clock_that_was_set_back_does_not_stop_the_last_use(ana: User) -> None:
    desk = log_in()
    age(desk, -timedelta(days=300))

    assert is_in(desk)

    assert row_of(desk).seen_at <= timezone.now()


@pytest.mark.parametrize(
    ("agent", "name"),
    [
        ("", ""),
        ("<script>alert(1)</script>" * 90, ""),
        ("Mozilla/5.0 (Windows NT 10.0) AppleWebKit/537.36 Chrome/140.0 Safari/537.36 Edg/140.0", "Edge · Windows"),
        ("Mozilla/5.0 (iPhone; CPU iPhone OS 19_0 like Mac OS X) Version/19.0 Safari/604.1", "Safari · iPhone"),
        ("curl/8.5.0", "curl"),
    ],
)
def test_of_a_browser_a_few_known_words_are_kept(ana: User, agent: str, name: str) -> None:
    assert row_of(log_in(agent)).browser == name
