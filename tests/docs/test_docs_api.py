"""Requests that the pages show are answered."""

from pathlib import Path

import pytest
from docs_pages import PAGES, blocks, page_id
from rest_framework.test import APIClient

from api.rows import make_user

SHOWN = [page for page in PAGES if blocks(page, "http")]


@pytest.mark.django_db
@pytest.mark.parametrize("page", SHOWN, ids=page_id)
def test_every_request_of_a_page_is_answered_to_who_may_read(page: Path) -> None:
    client = APIClient()
    client.force_login(make_user())
    addresses = [line.removeprefix("GET ") for block in blocks(page, "http") for line in reads_of(block)]

    answers = {address: client.get(address).status_code for address in addresses}

    assert {address: status for address, status in answers.items() if status != 200} == {}


def reads_of(block: str) -> list[str]:
    """List the requests that read; one that writes is a block of its own, and sent by the test of its page."""
    return [] if block.startswith("POST ") else block.splitlines()
