"""Sessions and their cookies: Secure over TLS, ended with the account, a week long."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.test import Client

from api.rows import PASSWORD, make_user
from facho.accounts.roles import Role

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("by_tls", [True, False])
def test_cookies_given_over_tls_stay_with_tls(client: Client, by_tls: bool) -> None:
    make_user(Role.VIEWER, "ana")

    answer = client.post("/login/", {"username": "ana", "password": PASSWORD}, secure=by_tls)

    session, csrf = answer.cookies["sessionid"], answer.cookies["csrftoken"]
    assert bool(session["secure"]) is bool(csrf["secure"]) is by_tls
    assert (session["httponly"], session["samesite"]) == (True, "Lax")
    assert session["max-age"] == timedelta(days=7).total_seconds()


def test_a_closed_account_has_no_session(client: Client) -> None:
    client.force_login(make_user(Role.VIEWER, "ana"))

    User.objects.update(is_active=False)

    assert client.get("/").status_code == 302
