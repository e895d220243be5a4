"""The link of an ONU to its page on the ACS: each form of its identity, and nothing that could lead elsewhere."""

from urllib.parse import unquote, urlsplit

import pytest
from django.test import Client
from pytest_django import Settings

from api.rows import make_olt, make_onu, make_user
from docs.docs_pages import ROOT, blocks
from facho.core.env import read_environment
from facho.onus.models import Onu

(LINE,) = [
    line
    for block in blocks(ROOT / "docs/neighbours.md", "text")
    for line in block.splitlines()
    if line.startswith("FACHO_ACS_URL")
]
NAME, _equals, TEMPLATE = LINE.partition("=")
HUAWEI = "HWTC1A2B3C4D"


def link(settings: Settings, template: str, **fields: str) -> str:
    settings.FACHO_ACS_URL = template
    return Onu(**{"serial": HUAWEI, **fields}).acs_url


def test_the_address_of_the_page_finds_both_notations(settings: Settings) -> None:
    """The example of docs/neighbours.md; GenieACS reads the filter from what stands behind the hash."""
    assert read_environment({NAME: TEMPLATE}).problems == ()

    filter_ = unquote(urlsplit(link(settings, TEMPLATE)).fragment).partition("filter=")[2]

    assert filter_ == 'DeviceID.SerialNumber = "HWTC1A2B3C4D" OR DeviceID.SerialNumber = "485754431A2B3C4D"'


@pytest.mark.parametrize(
    ("template", "fields", "expected"),
    [
        ("https://acs/{serial}", {}, "https://acs/HWTC1A2B3C4D"),
        ("https://acs/{serial_hex}", {"serial": "0000544D1A2B3C4D"}, "https://acs/0000544D1A2B3C4D"),
        ("https://acs/{mac}", {"serial": "", "mac": "48:57:54:1A:2B:3C"}, "https://acs/48%3A57%3A54%3A1A%3A2B%3A3C"),
        ("https://acs/{serial}", {"serial": ""}, ""),
        ("https://acs/{serial}?m={mac}", {}, ""),
        ("https://acs/{serial_hex}", {"serial": "ODDSERIAL00012"}, ""),
        ("https://acs/{serial_hex}", {"serial": "ODDSERIA"}, ""),
        ("https://acs/{serial}", {"serial": 'X" OR "1"="1'}, ""),
        ("https://acs/{serial}", {"serial": "../../admin#"}, ""),
        ("https://acs/{serial}", {"serial": "{mac}", "mac": "x"}, ""),
        ("https://acs/{serial}", {"serial": "SERIÁL000012"}, ""),
        ("", {}, ""),
    ],
)
def test_an_onu_without_what_the_address_names_has_no_link(
    settings: Settings, template: str, fields: dict[str, str], expected: str
) -> None:
    assert link(settings, template, **fields) == expected


@pytest.mark.parametrize(
    "text",
    [
        "javascript:alert({serial})",
        "ftp://acs/{serial}",
        "//acs/{serial}",
        "https://{serial}.acs/",
        "https://user@acs/{serial}",
        "https://acs/",
        "https://acs/{serial",
        "https://acs/{serial}}",
        "https://acs/{onu}",
        "https://acs/{serial.__class__}",
        'https://acs/{serial}"onclick=',
        "https://acs/{serial} ",
        "https://acs/ñ{serial}",
    ],
)
def test_an_address_that_is_not_plain_is_refused(text: str) -> None:
    assert [problem.name for problem in read_environment({"FACHO_ACS_URL": text}).problems] == ["FACHO_ACS_URL"]


@pytest.mark.django_db
def test_page_and_api_have_the_link(client: Client, settings: Settings) -> None:
    onu = make_onu(make_olt(), serial=HUAWEI)
    client.force_login(make_user())
    before = client.get(f"/onus/{onu.id}/").content.decode()

    settings.FACHO_ACS_URL = "https://acs.example.net/?a=1&serial={serial}"
    page, answer = client.get(f"/onus/{onu.id}/").content.decode(), client.get(f"/api/v1/onus/{onu.id}/").json()

    assert "onu-acs" not in before
    assert 'id="onu-acs" class="more" href="https://acs.example.net/?a=1&amp;serial=HWTC1A2B3C4D"' in page
    assert answer["acs_url"] == "https://acs.example.net/?a=1&serial=HWTC1A2B3C4D"
