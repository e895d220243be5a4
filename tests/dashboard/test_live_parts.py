"""Parts that refresh themselves: unchanged ones are not sent again, times count on, and the badge comes with each."""

import asyncio
import gzip
import json
import re
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest
from django.http import HttpRequest, StreamingHttpResponse
from django.template import Context, Template
from django.test import Client, RequestFactory
from django.urls import reverse
from django.utils import timezone, translation

from api.rows import make_execution, make_leader, make_node, make_olt, make_onu, make_user
from dashboard.outage_rows import make_outage
from facho.accounts.roles import Role
from facho.core.security import CompressionMiddleware
from facho.executions.models import Execution
from facho.hosts.models import Olt
from facho.onus.models import OnuReading
from facho.polling.domain.execution_state import ExecutionState

pytestmark = pytest.mark.django_db

NOTHING_SHOWN = '"none"'


def refresh(client: Client, path: str, version: str = NOTHING_SHOWN) -> Any:
    return client.get(path, headers={"HX-Request": "true", "If-None-Match": version})


@pytest.fixture
def olt(viewer: Client) -> Olt:
    make_leader()
    return make_olt("North")


@pytest.mark.parametrize("path", ["/onus/", "/outages/", "/events/", "/alerts/"])
def test_a_list_that_has_not_changed_is_not_sent_again(viewer: Client, olt: Olt, path: str) -> None:
    make_onu(olt, (0, 1, 0, 1), run_state="online", state_since=timezone.now() - timedelta(hours=1))
    first = refresh(viewer, path)

    again = refresh(viewer, path, first.headers["ETag"])

    assert (first.status_code, again.status_code, again.content) == (200, 304, b"")
    assert again.headers["ETag"] == first.headers["ETag"]


def test_a_list_that_changed_is_sent(viewer: Client, olt: Olt) -> None:
    make_onu(olt, (0, 1, 0, 1), run_state="online", rx_power_cdbm=-2000)
    version = refresh(viewer, "/onus/").headers["ETag"]
    OnuReading.objects.update(rx_power_cdbm=-2001)

    answer = refresh(viewer, "/onus/", version)

    assert answer.status_code == 200
    assert "-20.01" in answer.content.decode()


def test_time_that_passes_is_no_change(viewer: Client, olt: Olt, monkeypatch: pytest.MonkeyPatch) -> None:
    at = timezone.now()
    make_onu(olt, (0, 1, 0, 1), run_state="offline", state_since=at - timedelta(seconds=5))
    first = refresh(viewer, "/onus/")
    monkeypatch.setattr(timezone, "now", lambda: at + timedelta(seconds=30))

    assert refresh(viewer, "/onus/", first.headers["ETag"]).status_code == 304


def test_the_masked_token_of_a_form_is_no_change(db: None) -> None:
    client = Client(headers={"accept-language": "en"})
    client.force_login(make_user(Role.OPERATOR))
    olt = make_olt("North")
    make_node(olt, next_run_at=timezone.now() + timedelta(hours=1))
    part = reverse("olt-part", args=(olt.id, "work"))
    first = refresh(client, part)

    assert b"csrfmiddlewaretoken" in first.content
    assert refresh(client, part, first.headers["ETag"]).status_code == 304


def test_one_readers_version_is_not_anothers(viewer: Client, olt: Olt) -> None:
    version = refresh(viewer, "/onus/").headers["ETag"]
    make_onu(olt, (0, 1, 0, 1), run_state="online")
    other = Client(headers={"accept-language": "es"})
    other.force_login(make_user(Role.VIEWER))

    assert refresh(other, "/onus/", version).status_code == 200


@pytest.mark.parametrize("is_shown", [False, True])
def test_the_badge_comes_with_every_refresh(viewer: Client, olt: Olt, is_shown: bool) -> None:
    version = refresh(viewer, "/onus/").headers["ETag"] if is_shown else NOTHING_SHOWN
    make_outage(olt)

    answer = refresh(viewer, "/onus/", version)

    assert answer.status_code == (304 if is_shown else 200)
    assert json.loads(answer.headers["HX-Trigger"]) == {"unseen-outages": 1}


def test_a_page_begins_with_the_badge_that_refreshes_change(viewer: Client, olt: Olt) -> None:
    calm = viewer.get("/onus/").content.decode()
    make_outage(olt)

    assert '<span id="unseen-outages" hidden>' in calm
    assert '<span id="unseen-outages" class="badge"><span>1</span>' in viewer.get("/onus/").content.decode()


def test_a_session_that_ended_still_reloads_the_page(db: None) -> None:
    answer = refresh(Client(), "/live/")

    assert answer.headers["HX-Refresh"] == "true"
    assert "HX-Trigger" not in answer.headers


@pytest.mark.parametrize("language", ["en", "es"])
def test_the_browser_counts_in_the_units_of_the_page(language: str) -> None:
    """live.js has them once for all languages."""
    now = timezone.now()
    template = Template("{% load facho_words %}{% ago at now %}")

    with translation.override(language):
        shown = [
            template.render(Context({"at": now - timedelta(seconds=seconds), "now": now}))
            for seconds in (5, 300, 9_000, 900_000)
        ]

    counted = [
        found[1].replace("{}", length)
        for text, length in zip(shown, ("5 s", "5 min", "2 h", "10 d"), strict=True)
        if (found := re.search('data-tick="([^"]+)"', text))
    ]
    written = [found[1] for text in shown if (found := re.search(">([^<]+)<", text))]
    assert counted == written


def test_a_time_to_come_carries_the_words_for_when_it_has_come() -> None:
    now = timezone.now()
    with translation.override("en"):
        shown = Template("{% load facho_words %}{% due at now %}").render(
            Context({"at": now + timedelta(seconds=5), "now": now})
        )

    assert 'data-before="in {}"' in shown
    assert 'data-now="now"' in shown
    assert 'data-tick="{} late"' in shown
    assert ">in 5 s<" in shown


def test_a_running_job_shows_how_long_and_how_far(viewer: Client, olt: Olt) -> None:
    started_at = timezone.now() - timedelta(seconds=42)
    run = make_execution(make_node(olt, name="Light"), ExecutionState.RUNNING, started_at=started_at, duration_ms=0)
    Execution.objects.filter(id=run.id).update(progress={"rows": 96, "rows_in_all": 160, "ports": 3, "ports_in_all": 5})

    page = viewer.get(f"/olts/{olt.id}/").content.decode()

    assert "3 of 5 PON ports, 96 of 160 ONUs" in page
    assert ">42 s</time>" in page
    assert "0.0 s" not in page


def test_answers_are_compressed_for_who_can_read_them(viewer: Client, olt: Olt) -> None:
    plain = viewer.get("/")
    packed = viewer.get("/", headers={"accept-encoding": "gzip, br"})

    assert "Content-Encoding" not in plain.headers
    assert packed.headers["Content-Encoding"] == "gzip"
    assert "Accept-Encoding" in packed.headers["Vary"]
    assert b"North" in gzip.decompress(packed.content)
    assert len(packed.content) < len(plain.content) / 2


def test_the_length_of_a_compressed_answer_tells_nothing_twice(viewer: Client, olt: Olt) -> None:
    """BREACH compares lengths of answers that differ in what the attacker guessed."""
    lengths = {len(viewer.get("/waiting/", headers={"accept-encoding": "gzip"}).content) for _attempt in range(12)}

    assert len(lengths) > 4


def test_a_page_with_a_secret_is_not_compressed(viewer: Client) -> None:
    answer = viewer.get("/account/", headers={"accept-encoding": "gzip"})

    assert "Content-Encoding" not in answer.headers
    assert "no-transform" in answer.headers["Cache-Control"]


def test_a_download_is_one_compressed_stream() -> None:
    """Browsers read the first of several streams."""

    async def pieces() -> AsyncIterator[str]:
        for number in range(3):
            yield f"line {number}\n"

    def answer(request: HttpRequest) -> StreamingHttpResponse:
        return StreamingHttpResponse(pieces())

    async def download() -> bytes:
        request = RequestFactory().get("/", headers={"accept-encoding": "gzip"})
        response = CompressionMiddleware(answer)(request)
        assert response.headers["Content-Encoding"] == "gzip"
        return b"".join([piece async for piece in response])

    packed = asyncio.run(download())

    assert packed.count(b"\x1f\x8b\x08") == 1
    assert gzip.decompress(packed) == b"line 0\nline 1\nline 2\n"
