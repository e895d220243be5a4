"""Visitors of the pages."""

import pytest
from django.test import Client

from api.rows import make_user
from facho.accounts.roles import Role


@pytest.fixture
def viewer(db: None) -> Client:
    """Someone who is logged in and reads English."""
    client = Client(headers={"accept-language": "en"})
    client.force_login(make_user(Role.VIEWER))
    return client
