"""Clients of the API in each role."""

import pytest
from rest_framework.test import APIClient

from api.rows import make_user
from facho.accounts.roles import Role


@pytest.fixture
def anonymous() -> APIClient:
    """A client that nobody logged in."""
    return APIClient()


@pytest.fixture
def viewer(db: None) -> APIClient:
    """A client of someone who may read."""
    client = APIClient()
    client.force_login(make_user(Role.VIEWER))
    return client


@pytest.fixture
def operator(db: None) -> APIClient:
    """A client of someone who may write."""
    client = APIClient()
    client.force_login(make_user(Role.OPERATOR))
    return client


@pytest.fixture
def admin(db: None) -> APIClient:
    """A client of someone who may write everything, and reads English."""
    client = APIClient(headers={"accept-language": "en"})
    client.force_login(make_user(Role.ADMIN))
    return client
