"""Channels by form and by address: builds, checks, saves and tests them; secrets are never returned."""

import re
import socket
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, time
from secrets import token_hex
from typing import Any
from urllib.parse import parse_qsl, quote, unquote

from django.conf import settings
from django.db.models import QuerySet
from django.utils import translation
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from facho.alerts.http_request import KEY_CHARACTERS, PORTS, read_http_url
from facho.alerts.models import AlertChannel, ChannelKind, Notice, NoticeKind, Severity
from facho.alerts.sender import MAIL_PORTS, MAIL_SCHEMES, Network, Reach, Trouble, open_service
from facho.infrastructure.secrets import Secret

MAX_ADDRESS = 2_000
HIDDEN = "…"
SECRETS = ("url", "signing_key")
ON_CALL = ("on_call_from", "on_call_to", "on_call_days")
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
    "workflows": frozenset({"pa", "route", "ver"}),
    "discord": frozenset({"thread"}),
    "ntfy": _NTFY,
    "ntfys": _NTFY,
}
# What people try for any server that takes a request.
GENERIC = frozenset({"json", "jsons", "xml", "xmls", "form", "forms", "http", "https"})


SENTENCES = {
    Trouble.UNREACHABLE: gettext_lazy("The server cannot be reached."),
    Trouble.ADDRESS_REFUSED: gettext_lazy("The server is inside the network and not listed in FACHO_WEBHOOK_ALLOW."),
    Trouble.TIMED_OUT: gettext_lazy("The server did not answer in time."),
    Trouble.CERTIFICATE: gettext_lazy("The certificate of the server is not trusted here."),
    Trouble.NOT_TAKEN: gettext_lazy("The service did not accept the message."),
    Trouble.UNUSABLE: gettext_lazy("The address cannot be used: enter it again."),
    Trouble.KEY_LOST: gettext_lazy("The address cannot be decrypted: restore the encryption keys, or enter it again."),
    Trouble.CRASHED: gettext_lazy("The message could not be sent; see the log."),
}
# Servers of services whose address names none.
HOSTS = {
    "tgram": "api.telegram.org",
    "whatsapp": "graph.facebook.com",
    "slack": "hooks.slack.com",
    "discord": "discord.com",
    "ntfy": "ntfy.sh",
    "ntfys": "ntfy.sh",
}
# Somebody waits for the form.
CONNECT_SECONDS = 4.0


class ChannelFault(Exception):
    """Why an address or a key cannot be used, in the active language; never repeats it."""


@dataclass(frozen=True, slots=True)
class ServiceInput:
    """One input of a service's form: what it is called, what it looks like, and what it must match."""

    name: str
    label: str | Promise
    pattern: str
    example: str
    help: str | Promise = ""
    is_secret: bool = False
    is_required: bool = True
    # Filled in already; whether the form of a stored channel was filled in is judged by the others.
    usual: str = ""
    choices: tuple[tuple[str, Promise], ...] = ()


@dataclass(frozen=True, slots=True)
class Service:
    """A kind of channel by form. `build` makes the address from inputs that match their patterns."""

    code: str
    label: str | Promise
    needs: str | Promise
    inputs: tuple[ServiceInput, ...]
    build: Callable[[Mapping[str, str]], str]
    # Where a fault of the whole address is shown.
    main: str
    schemes: tuple[str, ...] = ()
    kind: ChannelKind = ChannelKind.APPRISE


_HOST = r"[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?"
_MAILBOX = r"[^\s@,;<>]+@[A-Za-z0-9.-]+"
_SLACK = r"https://hooks\.slack\.com/services/([A-Za-z0-9]+)/([A-Za-z0-9]+)/([A-Za-z0-9]+)/?"
_TEAMS = (
    r"https://(?P<server>[A-Za-z0-9_.-]+(?::\d{1,5})?)(?P<pa>/powerautomate/automations/direct(?:/cu/(?P<route>\d+))?)?"
    r"/workflows/(?P<id>[A-Za-z0-9_-]+)/triggers/manual/paths/invoke/?\?(?P<query>\S+)"
)


def build_email_address(given: Mapping[str, str]) -> str:
    scheme = "mailto" if given["security"] == "none" else "mailtos"
    login = f"{quote(given['user'], safe='')}:{quote(given['password'], safe='')}@" if given["user"] else ""
    query = {"smtp": given["server"], "from": given["sender"], "to": given["recipient"], "cc": given["cc"]}
    if scheme == "mailtos":
        query["mode"] = given["security"]
    parts = "&".join(f"{name}={quote(value, safe='@,')}" for name, value in query.items() if value)
    return f"{scheme}://{login}{given['server']}:{given['port']}?{parts}"


def build_slack_address(given: Mapping[str, str]) -> str:
    found = re.fullmatch(_SLACK, given["address"])
    return "slack://" + "/".join(found.groups()) if found else ""


def build_teams_address(given: Mapping[str, str]) -> str:
    found = re.fullmatch(_TEAMS, given["address"])
    if not found:
        return ""
    query = dict(parse_qsl(found["query"]))
    options = {"pa": "yes" if found["pa"] else "", "route": found["route"], "ver": query.get("api-version")}
    kept = "&".join(f"{name}={value}" for name, value in options.items() if value)
    return f"workflows://{found['server']}/{found['id']}/{quote(query.get('sig', ''), safe='')}?{kept}"


def build_whatsapp_address(given: Mapping[str, str]) -> str:
    token, number = quote(given["token"], safe=""), given["number"].lstrip("+")
    place = f"{given['phone_id']}/+{number}?lang={given['lang']}&:body=1"
    return f"whatsapp://{given['template']}:{token}@{place}"


# In the order in which they are offered.
SERVICES = {
    service.code: service
    for service in (
        Service(
            "email",
            gettext_lazy("E-mail"),
            gettext_lazy("A mailbox that can send, and its server. Mail providers call it SMTP or outgoing mail."),
            (
                ServiceInput("recipient", gettext_lazy("Send to"), _MAILBOX, "noc@example.net"),
                ServiceInput(
                    "cc",
                    gettext_lazy("Copies to"),
                    rf"{_MAILBOX}(?:\s*,\s*{_MAILBOX})*",
                    "ana@example.net, luis@example.net",
                    gettext_lazy("More readers, separated by commas."),
                    is_required=False,
                ),
                ServiceInput("sender", gettext_lazy("Sent from"), _MAILBOX, "facho@example.net"),
                ServiceInput("server", gettext_lazy("Mail server"), _HOST, "mail.example.net"),
                ServiceInput(
                    "security",
                    gettext_lazy("Encryption"),
                    r"starttls|ssl|none",
                    "",
                    usual="starttls",
                    choices=(
                        ("starttls", gettext_lazy("STARTTLS, usually port 587")),
                        ("ssl", gettext_lazy("TLS, usually port 465")),
                        ("none", gettext_lazy("none, for a server inside, usually port 25")),
                    ),
                ),
                ServiceInput("port", gettext_lazy("Port"), r"\d{1,5}", "587", usual="587"),
                ServiceInput("user", gettext_lazy("User name"), r"\S.*", "facho@example.net", is_required=False),
                ServiceInput("password", gettext_lazy("Password"), r".+", "", is_secret=True, is_required=False),
            ),
            build_email_address,
            main="server",
            schemes=("mailto", "mailtos"),
        ),
        Service(
            "telegram",
            "Telegram",
            gettext_lazy("A bot: write to @BotFather, send /newbot and copy its token. Then add the bot to the chat."),
            (
                ServiceInput(
                    "token",
                    gettext_lazy("Token of the bot"),
                    r"\d{6,}:[A-Za-z0-9_-]{20,}",
                    "123456789:AAExampleExampleExampleExample",
                    is_secret=True,
                ),
                ServiceInput(
                    "chat",
                    gettext_lazy("Number of the chat"),
                    r"-?\d{3,}",
                    "-1001234567890",
                    gettext_lazy("A group's number begins with a minus; web.telegram.org shows it in the address."),
                ),
            ),
            lambda given: f"tgram://{given['token']}/{given['chat']}",
            main="token",
            schemes=("tgram",),
        ),
        Service(
            "whatsapp",
            "WhatsApp",
            gettext_lazy(
                "A business account at Meta, an app with WhatsApp, and an approved template with one variable, such as"
                " “Facho: {{1}}”."
            ),
            (
                ServiceInput("number", gettext_lazy("Send to number"), r"\+?\d{8,15}", "+573001234567"),
                ServiceInput(
                    "phone_id",
                    gettext_lazy("Phone number ID of the sender"),
                    r"\d{8,}",
                    "123456789012345",
                    gettext_lazy("From the app's page at Meta; it is not the number itself."),
                ),
                ServiceInput("token", gettext_lazy("Permanent token"), r"[A-Za-z0-9]{8,}", "EAAG…", is_secret=True),
                ServiceInput("template", gettext_lazy("Name of the template"), r"[a-z0-9_]+", "facho_alert"),
                ServiceInput(
                    "lang", gettext_lazy("Language of the template"), r"[a-z]{2}(?:_[A-Z]{2})?", "es", usual="es"
                ),
            ),
            build_whatsapp_address,
            main="token",
            schemes=("whatsapp",),
        ),
        Service(
            "slack",
            "Slack",
            gettext_lazy(
                "An incoming webhook: in Slack, open “Incoming Webhooks”, choose a channel and copy the address."
            ),
            (
                ServiceInput(
                    "address",
                    gettext_lazy("Address of the webhook"),
                    _SLACK,
                    "https://hooks.slack.com/services/T000/B000/XXXX",
                    is_secret=True,
                ),
            ),
            build_slack_address,
            main="address",
            schemes=("slack",),
        ),
        Service(
            "teams",
            "Teams",
            gettext_lazy(
                "A workflow: in the menu of a channel of Teams choose Workflows, then “Post to a channel when a webhook"
                " request is received”, and copy its address."
            ),
            (
                ServiceInput(
                    "address",
                    gettext_lazy("Address of the workflow"),
                    _TEAMS,
                    "https://prod-00.westus.logic.azure.com:443/workflows/…/triggers/manual/paths/invoke?…&sig=…",
                    is_secret=True,
                ),
            ),
            build_teams_address,
            main="address",
            schemes=("workflow", "workflows"),
        ),
        Service(
            "webhook",
            gettext_lazy("Webhook"),
            gettext_lazy("Your own program: it receives a signed POST with JSON."),
            (
                ServiceInput("address", gettext_lazy("Address"), r"https?://\S+", "https://hooks.example.net/facho"),
                ServiceInput(
                    "signing_key",
                    gettext_lazy("Signing key"),
                    r".{16,}",
                    "",
                    gettext_lazy("At least 16 characters, shared with your program. It proves who the sender is."),
                    is_secret=True,
                ),
            ),
            lambda given: given["address"],
            main="address",
            kind=ChannelKind.WEBHOOK,
        ),
        Service(
            "other",
            gettext_lazy("Other, by address"),
            gettext_lazy("ntfy, Discord and others by their address, as in docs/alerts.md."),
            (
                ServiceInput(
                    "address",
                    gettext_lazy("Address"),
                    r"[a-z]+://\S+",
                    "ntfys://TOPIC",
                    gettext_lazy("For example ntfys://TOPIC or discord://WEBHOOK-ID/WEBHOOK-TOKEN."),
                    is_secret=True,
                ),
            ),
            lambda given: given["address"],
            main="address",
        ),
    )
}


def service_of(channel: AlertChannel) -> Service:
    """Return the form of a channel's service."""
    if channel.kind == ChannelKind.WEBHOOK:
        return SERVICES["webhook"]
    scheme = channel.shown_as.partition("://")[0]
    return next((each for each in SERVICES.values() if scheme in each.schemes), SERVICES["other"])


def check_reach(kind: str, url: str, listed: tuple[Network, ...]) -> None:
    """Connect once to the server of a checked address; ChannelFault when it is forbidden or cannot be reached."""
    host, port, inside_ports = server_of(kind, url)
    names = {"host": host, "port": port}
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise ChannelFault(_("The host name %(host)s does not resolve: check it.") % names) from None
    reach = Reach(listed, inside_ports)
    allowed = [str(entry[4][0]) for entry in found if reach.allows(str(entry[4][0]), port)]
    if not allowed:
        raise ChannelFault(str(SENTENCES[Trouble.ADDRESS_REFUSED]))
    for address in allowed[:2]:
        with suppress(OSError), socket.create_connection((address, port), timeout=CONNECT_SECONDS):
            return
    raise ChannelFault(_("%(host)s does not answer on port %(port)s: check both, and the firewall.") % names)


def server_of(kind: str, url: str) -> tuple[str, int, frozenset[int]]:
    """Return host and port of a checked address, and the ports on which it may be inside the network."""
    if kind == ChannelKind.WEBHOOK:
        parts = read_http_url(url)
        return str(parts.hostname), parts.port or PORTS[parts.scheme], frozenset()
    scheme, service = url.partition("://")[0].lower(), open_service(url)
    if scheme in MAIL_SCHEMES:
        return str(getattr(service, "smtp_host", "")), int(getattr(service, "port", 0) or 25), MAIL_PORTS
    named = getattr(service, "host", "") if scheme == "workflows" or getattr(service, "mode", "") == "private" else ""
    usual = PORTS["http"] if scheme == "ntfy" and named else PORTS["https"]
    return str(named or HOSTS[scheme]), int(getattr(service, "port", 0) or usual), frozenset()


def check_service(url: str) -> str:
    """Return what may be shown of the address of a message service; ChannelFault when it cannot be used."""
    scheme, _separator, rest = url.partition("://")
    scheme = scheme.lower()
    _check_text(url)
    if scheme in GENERIC:
        raise ChannelFault(_("Add a channel of the kind webhook for this: it signs its messages."))
    if scheme not in PARAMETERS:
        schemes = ", ".join(sorted(PARAMETERS))
        raise ChannelFault(_("An address begins with one of: %(schemes)s.") % {"schemes": schemes})
    query = rest.partition("?")[2]
    # Names of parameters are read as apprise reads them.
    for pair in query.replace(";", "&").split("&") if query else ():
        if unquote(pair.partition("=")[0]).lower().strip() not in PARAMETERS[scheme]:
            allowed = ", ".join(sorted(PARAMETERS[scheme]))
            raise ChannelFault(_("Only these parameters are allowed: %(names)s.") % {"names": allowed})
    service: Any = open_service(url)
    if service is None:
        raise ChannelFault(_("This is not a complete address of the service; docs/alerts.md shows one of each."))
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
            _("Enter https://HOST/PATH, without a user or a password: the signature proves who the sender is.")
        ) from None
    return f"{parts.scheme}://{parts.netloc}/{HIDDEN}"


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
    is_same = stored is not None and stored.kind == kind
    if kind == ChannelKind.WEBHOOK:
        return find_webhook_faults(given, stored_as=stored.shown_as if stored is not None and is_same else None)
    try:
        if given.url or not is_same:
            check_service(given.url.reveal())
    except ChannelFault as fault:
        return {"url": str(fault)}
    return {}


def find_webhook_faults(given: ChannelSecrets, *, stored_as: str | None) -> dict[str, str]:
    """Return by input what is wrong with the address and the key of a webhook, which was shown so before, if it was."""
    faults = {}
    is_moved = False
    try:
        if given.url or stored_as is None:
            shown = check_webhook(given.url.reveal())
            is_moved = stored_as is not None and stored_as != shown[:MAX_SHOWN]
    except ChannelFault as fault:
        faults["url"] = str(fault)
    key = given.signing_key.reveal()
    # One that can be guessed signs nothing.
    if (key or stored_as is None) and (len(key) < KEY_CHARACTERS or not key.isprintable()):
        faults["signing_key"] = _("A webhook needs a signing key of at least %(n)s characters.") % {"n": KEY_CHARACTERS}
    if is_moved and not key:
        faults["signing_key"] = _("Give a signing key: the stored one is not used for another server.")
    return faults


def find_hour_faults(on_call_from: time | None, on_call_to: time | None) -> dict[str, str]:
    """Return by input what is wrong with the hours of a channel; equal times are all day."""
    if (on_call_from is None) == (on_call_to is None):
        return {}
    missing = "on_call_from" if on_call_from is None else "on_call_to"
    return {missing: _("Hours need both their beginning and their end.")}


def save_channel(channel: AlertChannel, given: ChannelSecrets) -> None:
    """Write a channel that has no faults; a secret that was not given is not read, and erased when it may not stay."""
    columns = ["name", "kind", "language", "enabled", "digest", "sends_reports", *ON_CALL, "updated_at"]
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
