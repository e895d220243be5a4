"""Which addresses a channel may have: a short list of services with what each may be told, and what may be shown."""

from typing import Any
from urllib.parse import unquote

from django.utils.translation import gettext as _

from facho.alerts.apprise_service import is_addressed, open_service
from facho.alerts.http_request import read_http_url
from facho.alerts.webhook import KEY_CHARACTERS

MAX_ADDRESS = 2_000
HIDDEN = "…"

_MAIL = frozenset({"to", "cc", "bcc", "from", "name", "reply", "smtp", "user", "pass", "mode", "verify"})
_NTFY = frozenset({"to", "priority", "tags", "click", "mode", "auth", "token", "verify"})
# Every parameter that is not listed is refused: some read files of this machine, or fetch what a stranger names.
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
# What people reach for when they mean any server that takes a request.
GENERIC = frozenset({"json", "jsons", "xml", "xmls", "form", "forms", "http", "https"})


class ChannelFault(Exception):
    """Says, in the language of whoever asked, why an address or a key cannot be used; never repeats it."""


def check_service(url: str) -> str:
    """Return what may be shown of the address of a message service; ChannelFault when it cannot be used."""
    scheme, _separator, rest = url.partition("://")
    scheme = scheme.lower()
    _check_text(url)
    _check_scheme(scheme)
    _check_parameters(scheme, rest.partition("?")[2])
    service = open_service(url)
    if service is None:
        raise ChannelFault(_("This is no complete address of the service; docs/alerts.md shows one of each."))
    if not is_addressed(service):
        raise ChannelFault(_("Name exactly one recipient: make a channel for each, or use cc for e-mail."))
    return _shown(scheme, service)


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


def _check_scheme(scheme: str) -> None:
    if scheme in GENERIC:
        raise ChannelFault(_("Make a channel of the kind webhook for this: it signs what it sends."))
    if scheme not in PARAMETERS:
        raise ChannelFault(
            _("An address begins with one of: %(schemes)s.") % {"schemes": ", ".join(sorted(PARAMETERS))}
        )


def _check_parameters(scheme: str, query: str) -> None:
    """Refuse parameters by their names, read as apprise reads them."""
    pairs = query.replace(";", "&").split("&") if query else []
    for pair in pairs:
        name = unquote(pair.partition("=")[0]).lower().strip()
        if name not in PARAMETERS[scheme]:
            allowed = ", ".join(sorted(PARAMETERS[scheme]))
            raise ChannelFault(_("After the ? only these may stand: %(names)s.") % {"names": allowed})


def _shown(scheme: str, service: Any) -> str:
    """Name the server where it is no secret; hosts of other schemes are tokens and topics."""
    if scheme in ("mailto", "mailtos"):
        return f"{scheme}://{service.smtp_host}:{service.port}"
    if scheme in ("ntfy", "ntfys"):
        host = service.host if service.mode == "private" else "ntfy.sh"
        return f"{scheme}://{host}/{HIDDEN}"
    return f"{scheme}://{HIDDEN}"
