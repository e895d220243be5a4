"""Checks, saves and tests channels, in one way for pages and API; secrets are never returned."""

from dataclasses import dataclass
from datetime import datetime
from secrets import token_hex
from typing import Any
from urllib.parse import unquote

from django.conf import settings
from django.db.models import QuerySet
from django.utils import translation
from django.utils.translation import gettext as _

from facho.alerts.http_request import KEY_CHARACTERS, read_http_url
from facho.alerts.models import AlertChannel, ChannelKind, Notice, NoticeKind, Severity
from facho.alerts.sender import MAIL_SCHEMES, open_service
from facho.infrastructure.secrets import Secret

MAX_ADDRESS = 2_000
HIDDEN = "…"
SECRETS = ("url", "signing_key")
MAX_SHOWN = AlertChannel._meta.get_field("shown_as").max_length

_MAIL = frozenset({"to", "cc", "bcc", "from", "name", "reply", "smtp", "user", "pass", "mode", "verify"})
_NTFY = frozenset({"to", "priority", "tags", "click", "mode", "auth", "token", "verify"})
# Every other parameter is refused: some read files of this machine, or fetch any address.
PARAMETERS = {
    "mailto": _MAIL,
    "mailtos": _MAIL,
    "tgram": frozenset({"silent", "topic", "preview"}),
    "whatsapp": frozenset(
        {"token", "template", "from", "lang", "to", ":body", ":type", *(f":{n}" for n in range(1, 10))}
    ),
    "slack": frozenset({"to"}),
    "discord": frozenset({"thread"}),
    "ntfy": _NTFY,
    "ntfys": _NTFY,
}
# What people try for any server that takes a request.
GENERIC = frozenset({"json", "jsons", "xml", "xmls", "form", "forms", "http", "https"})


class ChannelFault(Exception):
    """Why an address or a key cannot be used, in the active language; never repeats it."""


def check_service(url: str) -> str:
    """Return what may be shown of the address of a message service; ChannelFault when it cannot be used."""
    scheme, _separator, rest = url.partition("://")
    scheme = scheme.lower()
    _check_text(url)
    if scheme in GENERIC:
        raise ChannelFault(_("Make a channel of the kind webhook for this: it signs what it sends."))
    if scheme not in PARAMETERS:
        schemes = ", ".join(sorted(PARAMETERS))
        raise ChannelFault(_("An address begins with one of: %(schemes)s.") % {"schemes": schemes})
    query = rest.partition("?")[2]
    # Names of parameters are read as apprise reads them.
    for pair in query.replace(";", "&").split("&") if query else ():
        if unquote(pair.partition("=")[0]).lower().strip() not in PARAMETERS[scheme]:
            allowed = ", ".join(sorted(PARAMETERS[scheme]))
            raise ChannelFault(_("After the ? only these may stand: %(names)s.") % {"names": allowed})
    service: Any = open_service(url)
    if service is None:
        raise ChannelFault(_("This is no complete address of the service; docs/alerts.md shows one of each."))
    # With several recipients, those who got a message would get it again at each new try.
    if len(service) != 1 or not getattr(service, "targets", True):
        raise ChannelFault(_("Name exactly one recipient: make a channel for each, or use cc for e-mail."))
    # The server is shown where it is no secret; hosts of other schemes are tokens and topics.
    if scheme in MAIL_SCHEMES:
        return f"{scheme}://{service.smtp_host}:{service.port}"
    if scheme in ("ntfy", "ntfys"):
        return f"{scheme}://{service.host if service.mode == 'private' else 'ntfy.sh'}/{HIDDEN}"
    return f"{scheme}://{HIDDEN}"


def check_webhook(url: str) -> str:
    """Return what may be shown of the address of a webhook; ChannelFault when it cannot be used."""
    _check_text(url)
    try:
        parts = read_http_url(url)
    except ValueError:
        raise ChannelFault(
            _("Write https://HOST/PATH, without a user or a password: the signature proves who sends.")
        ) from None
    return f"{parts.scheme}://{parts.netloc}/{HIDDEN}"


def check_signing_key(key: str) -> None:
    """Refuse a key that can be guessed."""
    if len(key) < KEY_CHARACTERS or not key.isprintable():
        raise ChannelFault(_("A webhook needs a signing key of at least %(n)s characters.") % {"n": KEY_CHARACTERS})


def _check_text(url: str) -> None:
    if len(url) > MAX_ADDRESS or not url.isprintable() or " " in url or "\\" in url:
        raise ChannelFault(
            _("An address has no spaces, no backslashes and at most %(n)s characters.") % {"n": MAX_ADDRESS}
        )


@dataclass(frozen=True, slots=True)
class ChannelSecrets:
    """What a person filled in; empty: the stored one stays, a signing key only while the server is the same."""

    url: Secret
    signing_key: Secret


def stored_channels() -> QuerySet[AlertChannel]:
    return AlertChannel.objects.defer(*SECRETS)


def find_faults(kind: str, given: ChannelSecrets, *, stored: AlertChannel | None) -> dict[str, str]:
    """Return by input what keeps a channel from being saved; a channel of another kind needs an address of its kind.

    A webhook that leads to another server needs another key: the new server could pass requests signed with the old
    one to the old server as ours.
    """
    faults = {}
    is_same = stored is not None and stored.kind == kind
    is_moved = False
    try:
        if given.url or not is_same:
            shown = _shown(kind, given.url)
            is_moved = stored is not None and is_same and stored.shown_as != shown[:MAX_SHOWN]
    except ChannelFault as fault:
        faults["url"] = str(fault)
    try:
        if kind == ChannelKind.WEBHOOK and (given.signing_key or not is_same):
            check_signing_key(given.signing_key.reveal())
    except ChannelFault as fault:
        faults["signing_key"] = str(fault)
    if kind == ChannelKind.WEBHOOK and is_moved and not given.signing_key:
        faults["signing_key"] = _("Give a signing key: the stored one is not used for another server.")
    return faults


def save_channel(channel: AlertChannel, given: ChannelSecrets) -> None:
    """Write a channel that has no faults; a secret that was not given is not read, and erased when it may not stay."""
    columns = ["name", "kind", "language", "enabled", "updated_at"]
    is_moved = False
    if given.url:
        shown = _shown(channel.kind, given.url)[:MAX_SHOWN]
        is_moved = channel.shown_as != shown
        channel.url, channel.shown_as = given.url, shown
        columns += ["url", "shown_as"]
    if given.signing_key or channel.kind != ChannelKind.WEBHOOK or is_moved:
        channel.signing_key = given.signing_key if channel.kind == ChannelKind.WEBHOOK else Secret("")
        columns.append("signing_key")
    channel.save(update_fields=columns if channel.pk else None)


def write_test(channel: AlertChannel, *, now: datetime) -> Notice:
    """Put a test message into the outbox, where it goes first and is tried once."""
    with translation.override(channel.language or settings.LANGUAGE_CODE):
        title, body = _("Test"), _("This channel works: Facho sends its alerts here.")
    return Notice.objects.create(
        key=f"test-{token_hex(12)}",
        channel=channel,
        kind=NoticeKind.TEST,
        severity=Severity.INFO,
        title=f"Facho: {title}",
        body=body,
        created_at=now,
        next_try_at=now,
    )


def _shown(kind: str, url: Secret) -> str:
    return check_webhook(url.reveal()) if kind == ChannelKind.WEBHOOK else check_service(url.reveal())
