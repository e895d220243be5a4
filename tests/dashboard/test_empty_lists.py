"""Lists without a line: what was never there is told apart from what was narrowed away, and both lead on."""

import pytest
from django.test import Client

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/outages/", "No outage has ended yet."),
        ("/alerts/", "No alert has ended yet."),
        ("/events/", "No ONU events yet."),
        ("/violations/", "None yet: every OLT got its runs in every hour."),
        ("/waiting/", "No ONUs are waiting."),
    ],
)
def test_a_list_that_was_narrowed_too_far_leads_back_to_all(viewer: Client, path: str, words: str) -> None:
    whole, narrowed = (viewer.get(f"{path}{query}").content.decode() for query in ("", "?after=2026-01-01T00:00"))

    assert words in whole
    assert "show-all" not in whole
    assert words not in narrowed
    assert f'<a id="show-all" href="{path}">' in narrowed


def test_a_list_of_onus_before_the_first_reading_leads_to_the_first_steps(viewer: Client) -> None:
    assert '<a id="go-overview" href="/">' in viewer.get("/onus/").content.decode()
    assert "No ONU matches." in viewer.get("/onus/?q=nobody").content.decode()
