"""Which addresses a channel may have, and what is shown of them."""

import logging

import pytest

from facho.alerts.channels import PARAMETERS, ChannelFault, check_service, check_webhook

CANARY = "canary5e1f"
TELEGRAM = f"tgram://123456789:{CANARY}_abcdefghijklmnop/-100123456"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        (
            f"mailtos://noc:{CANARY}@isp.example?smtp=mail.isp.example&to=boss@isp.example&cc=a@isp.example,b@isp.example",
            "mailtos://mail.isp.example:587",
        ),
        (f"mailto://noc:{CANARY}@10.0.0.5:2525?from=facho@isp.example", "mailto://10.0.0.5:2525"),
        (TELEGRAM, "tgram://…"),
        (f"whatsapp://alert:{CANARY}@12345678901234/+573001234567?lang=es&:body=1", "whatsapp://…"),
        ("slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ", "slack://…"),
        (f"discord://4174216298/{CANARY}JHMoQ8_jHMoQ8_jHMoQ8_jHMoQ8_jHMoQ8", "discord://…"),
        (f"ntfys://tk_{CANARY}@ntfy.isp.example/{CANARY}", "ntfys://ntfy.isp.example/…"),
        (f"ntfys://{CANARY}", "ntfys://ntfy.sh/…"),
    ],
)
def test_every_service_of_the_page_can_be_used_and_shows_no_secret(url: str, shown: str) -> None:
    assert check_service(url) == shown


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd",
        "exec://rm",
        "syslog://",
        "dbus://",
        "windows://",
        "config://host/x.yml",
        "apprise://host/token",
        "https://hooks.slack.com/services/T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ",
        "json://10.0.0.1/",
        "nothing",
        "",
    ],
)
def test_every_other_scheme_is_refused(url: str) -> None:
    with pytest.raises(ChannelFault):
        check_service(url)


@pytest.mark.parametrize(
    "parameter",
    [
        "pgpkey=/etc/passwd",
        "pgp=sign",
        "wkd=yes",
        "redirect=yes",
        "template=/etc/passwd",
        "a=1;template=/etc/passwd",
        "%74emplate=/etc/passwd",
        "TEMPLATE=x",
        "+X-Header=1",
        "attach=/etc/passwd",
        "rto=99999",
    ],
)
@pytest.mark.parametrize("url", [f"ntfys://{CANARY}", "mailto://a:b@isp.example", "slack://T1J/A1B/#room"])
def test_a_parameter_that_is_not_needed_is_refused(url: str, parameter: str) -> None:
    with pytest.raises(ChannelFault, match="Only these"):
        check_service(f"{url}?{parameter}")


@pytest.mark.parametrize(
    "url",
    [
        "ntfys://ntfy.isp.example/one/two",
        "mailto://a:b@isp.example?to=one@isp.example,two@isp.example",
        "tgram://123456789:abcdefghijklmnop/1/2",
        "tgram://123456789:abcdefghijklmnop",
    ],
)
def test_a_channel_tells_exactly_one(url: str) -> None:
    with pytest.raises(ChannelFault, match="exactly one recipient"):
        check_service(url)


@pytest.mark.parametrize("url", ["slack://x", "whatsapp://x", "mailto://", "tgram://x/1", f"discord://{CANARY}"])
def test_an_incomplete_address_is_refused_without_being_repeated(url: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)

    with pytest.raises(ChannelFault) as caught:
        check_service(url)

    assert CANARY not in str(caught.value)
    assert caplog.text == ""


def test_no_scheme_may_read_a_file() -> None:
    assert not {name for names in PARAMETERS.values() for name in names if "key" in name or "template=" in name}


@pytest.mark.parametrize(
    "url",
    [
        "http://",
        "https://user:pass@h.example/",
        "https://h.example/#x",
        "https://h.example/a b",
        "https://h.example:0/",
    ],
)
def test_a_webhook_has_a_plain_address(url: str) -> None:
    with pytest.raises(ChannelFault):
        check_webhook(url)


def test_a_webhook_shows_its_server_alone() -> None:
    assert check_webhook(f"https://hook.isp.example:8443/{CANARY}?token={CANARY}") == "https://hook.isp.example:8443/…"
