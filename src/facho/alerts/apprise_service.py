"""The one door to apprise: no plugins, files, images, redirects or log of its own; known to the sending process too."""

import logging
import re
from typing import TYPE_CHECKING

from facho.alerts.outcome import Message

if TYPE_CHECKING:
    from apprise import NotifyBase, NotifyType

LOG = logging.getLogger("apprise")
# Ports on which a mail server may stand inside without being listed.
MAIL_PORTS = frozenset({25, 465, 587, 2525})
MAIL_SCHEMES = frozenset({"mailto", "mailtos"})
# Where a name after an @ or a < calls people, and a name that a device chose must not.
CHAT_SCHEMES = frozenset({"slack", "discord", "tgram"})
UNJOINED = "\u200b"
_NO_WORD = re.compile(r"[^A-Za-z0-9-]+")


def open_service(url: str) -> "NotifyBase | None":
    """Build what sends to an address; nothing when apprise cannot read it."""
    # It writes addresses, and addresses hold tokens.
    LOG.disabled = True
    # Half a second that only who sends or checks an address has to wait for.
    from apprise import Apprise, AppriseAsset, OverflowMode

    asset = AppriseAsset(
        app_id="Facho",
        app_desc="Facho",
        app_url="",
        image_url_mask="",
        image_url_logo="",
        http_redirects=False,
        async_mode=False,
        interpret_emojis=False,
        pgp_autogen=False,
        pem_autogen=False,
        storage_mode="memory",
        allow_templates=False,
    )
    service = Apprise.instantiate(url, asset=asset, suppress_exceptions=True)
    if service is not None:
        # Several parts would not all be repeated or all be left alone.
        service.overflow_mode = OverflowMode.TRUNCATE
    return service


def is_addressed(service: "NotifyBase") -> bool:
    """Tell whether there is exactly one who is told: of several, some would be told again at each new try."""
    return len(service) == 1 and bool(getattr(service, "targets", True))


def hand_over(service: "NotifyBase", scheme: str, message: Message) -> bool:
    """Send and tell whether it was taken."""
    from apprise import Apprise, NotifyFormat

    if scheme in MAIL_SCHEMES:
        _name_mail(message.id)
        service.notify_format = NotifyFormat.TEXT
    client = Apprise(asset=service.asset)
    client.add(service)
    title, body = _texts(scheme, message)
    return bool(client.notify(title=title, body=body, notify_type=_type(message), body_format=NotifyFormat.TEXT))


def _type(message: Message) -> "NotifyType":
    from apprise import NotifyType

    if message.kind == "resolved":
        return NotifyType.SUCCESS
    return {"critical": NotifyType.FAILURE, "warning": NotifyType.WARNING}.get(message.severity, NotifyType.INFO)


def _texts(scheme: str, message: Message) -> tuple[str, str]:
    """Return title and body as a service takes them."""
    if scheme in CHAT_SCHEMES:
        return _uncalled(message.title), _uncalled(message.body)
    if scheme == "whatsapp":
        # Meta refuses a variable of a template that has a line break.
        return "", " ".join(f"{message.title} · {message.body}".split())
    return message.title, message.body


def _uncalled(text: str) -> str:
    return text.replace("@", f"@{UNJOINED}").replace("<", f"<{UNJOINED}")


def _name_mail(message_id: str) -> None:
    """Give every try of a message the same Message-ID, so that mail servers can drop a second one.

    Apprise has no way to choose it; the process that sends carries one message and ends.
    """
    from apprise.plugins.email import base

    vars(base)["make_msgid"] = lambda domain: f"<{_NO_WORD.sub('-', message_id)}@{domain}>"
