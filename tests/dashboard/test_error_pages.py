"""An address that leads nowhere, or where one may not go: the menu stays, and the way on."""

import pytest
from django.db import OperationalError
from django.test import Client

from facho.accounts.scope import OltScope
from facho.dashboard.templatetags import facho_words

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(("path", "status"), [("/onus/999999/", 404), ("/nowhere/", 404), ("/olts/add/", 403)])
def test_the_menu_stays(viewer: Client, path: str, status: int) -> None:
    answer = viewer.get(path)

    page = answer.content.decode()
    assert answer.status_code == status
    assert '<nav aria-label="Main">' in page
    assert "Log out" in page


def test_a_visitor_gets_no_menu(db: None) -> None:
    page = Client().get("/nowhere/").content.decode()

    assert "<nav" not in page


def test_a_database_that_fails_too_is_no_second_error(viewer: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_scope: OltScope) -> int:
        raise OperationalError("database is locked")

    monkeypatch.setattr(facho_words, "count_unseen", fail)

    answer = viewer.get("/nowhere/")

    page = answer.content.decode()
    assert answer.status_code == 404
    assert "Overview" in page
    assert "<nav" not in page
