"""Roles, tokens and the bearer authentication that rests on them."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import AnonymousUser, Group, User
from django.utils import timezone
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request
from rest_framework.test import APIRequestFactory, force_authenticate

from facho.accounts.roles import Role, give_role, role_of
from facho.api.models import ApiToken
from facho.api.shared.permissions import BearerTokenAuthentication, role_of_request
from facho.api.tokens import PREFIX, RoleTooHigh, create_token, verify_token

pytestmark = pytest.mark.django_db

NOW = timezone.now()


def person(role: Role | None, name: str = "ana") -> User:
    user = User.objects.create_user(name)
    if role:
        give_role(user, role)
    return user


def request_with(header: str | None) -> Request:
    extra = {"HTTP_AUTHORIZATION": header} if header is not None else {}
    return Request(APIRequestFactory().get("/", **extra), authenticators=[BearerTokenAuthentication()])


def test_roles_include_the_ones_below() -> None:
    assert Role.ADMIN.includes(Role.OPERATOR)
    assert Role.OPERATOR.includes(Role.OPERATOR)
    assert not Role.VIEWER.includes(Role.OPERATOR)


def test_the_highest_group_counts() -> None:
    user = person(Role.VIEWER)
    user.groups.add(Group.objects.get_or_create(name="operator")[0])

    assert role_of(user) is Role.OPERATOR


def test_a_new_role_replaces_the_old_one() -> None:
    user = person(Role.ADMIN)

    give_role(user, Role.VIEWER)

    assert role_of(User.objects.get()) is Role.VIEWER
    assert not User.objects.get().is_staff


def test_nobody_has_no_role() -> None:
    inactive = person(Role.ADMIN)
    inactive.is_active = False

    assert role_of(AnonymousUser()) is None
    assert role_of(person(None, "eva")) is None
    assert role_of(inactive) is None


def test_only_a_digest_of_the_token_is_stored() -> None:
    text = create_token(person(Role.VIEWER))

    assert text.startswith(PREFIX)
    assert len(text) > 40
    assert text not in str(ApiToken.objects.values().get())


def test_a_token_speaks_for_its_user() -> None:
    user = person(Role.OPERATOR)

    grant = verify_token(create_token(user, role=Role.VIEWER), now=NOW)

    assert grant is not None
    assert (grant.user, grant.role) == (user, Role.VIEWER)


def test_a_token_of_a_person_without_a_role_is_not_made() -> None:
    with pytest.raises(RoleTooHigh):
        create_token(person(None))


def test_a_token_loses_power_with_its_user() -> None:
    user = person(Role.ADMIN)
    text = create_token(user)

    give_role(user, Role.VIEWER)

    grant = verify_token(text, now=NOW)
    assert grant is not None
    assert grant.role is Role.VIEWER


def test_a_token_of_a_closed_account_is_worth_nothing() -> None:
    user = person(Role.ADMIN)
    text = create_token(user)

    User.objects.update(is_active=False)

    assert verify_token(text, now=NOW) is None


def test_a_token_ends_at_its_time() -> None:
    text = create_token(person(Role.VIEWER), expires_at=NOW + timedelta(days=1))

    assert verify_token(text, now=NOW + timedelta(hours=23)) is not None
    assert verify_token(text, now=NOW + timedelta(days=1)) is None


def test_the_last_use_is_noted_at_most_once_a_minute() -> None:
    text = create_token(person(Role.VIEWER))
    seen = []

    for seconds in (0, 59, 60, 61):
        verify_token(text, now=NOW + timedelta(seconds=seconds))
        seen.append(ApiToken.objects.get().last_used_at)

    assert seen == [NOW, NOW, NOW + timedelta(seconds=60), NOW + timedelta(seconds=60)]


def test_a_request_with_a_token_has_its_user_and_role() -> None:
    user = person(Role.ADMIN)

    request = request_with(f"Bearer {create_token(user, role=Role.OPERATOR)}")

    assert request.user == user
    assert role_of_request(request) is Role.OPERATOR


def test_a_request_without_a_token_is_anybody() -> None:
    for header in (None, "", "Basic abc"):
        request = request_with(header)
        assert not request.user.is_authenticated
        assert role_of_request(request) is None


@pytest.mark.parametrize("token", ["", "nonsense", "facho_ñandú", "a b", "\x00"])
def test_a_wrong_token_is_refused(token: str) -> None:
    with pytest.raises(AuthenticationFailed):
        _ = request_with(f"Bearer {token}").user


def test_a_session_gives_the_role_of_its_user() -> None:
    plain = APIRequestFactory().get("/")
    force_authenticate(plain, user=person(Role.OPERATOR))

    assert role_of_request(Request(plain)) is Role.OPERATOR


def test_the_answer_to_nobody_asks_for_a_bearer_token() -> None:
    assert BearerTokenAuthentication().authenticate_header(request_with(None)) == "Bearer"
