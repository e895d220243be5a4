"""Hands one message to apprise, in a short-lived process that may connect to its service and do nothing else.

`delivery` starts it without settings or environment, so nothing here may import Django. The values that both know are
here too: the message, the outcome of one try, and the addresses that a message may be sent to, which are public ones
and those that the operator listed; they are checked before every connect.
"""

import base64
import json
import logging
import re
import signal
import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from http import HTTPStatus
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import TYPE_CHECKING, Any

Network = IPv4Network | IPv6Network
Address = IPv4Address | IPv6Address

# Everything else of IPv6 is local, reserved, or an IPv4 address in disguise.
GLOBAL_UNICAST = IPv6Network("2000::/3")
NAT64 = IPv6Network("64:ff9b::/96")


class AddressRefused(OSError):
    """The server is where no message may be sent to."""


@dataclass(frozen=True, slots=True)
class Reach:
    """Where a sender may connect to."""

    listed: tuple[Network, ...] = ()
    # Ports on which servers inside need no listing.
    inside_ports: frozenset[int] = frozenset()

    def allows(self, host: str, port: int) -> bool:
        """Judge an address; a name is refused, since what it stands for may change before it is used."""
        try:
            address = _unwrap(ip_address(host.partition("%")[0]))
        except ValueError:
            return False
        if any(address in network for network in self.listed):
            return True
        if address.is_multicast:
            return False
        is_local = isinstance(address, IPv6Address) and address not in GLOBAL_UNICAST
        if address.is_global and not is_local:
            return True
        # Link-local is where clouds keep their secrets.
        is_inside = address.is_private and not (address.is_link_local or address.is_unspecified)
        return port in self.inside_ports and is_inside


def read_networks(texts: Iterable[str]) -> tuple[Network, ...]:
    """Read networks or single addresses; ValueError for anything else."""
    return tuple(ip_network(text) for text in texts)


def _unwrap(address: Address) -> Address:
    """Return the IPv4 address that an IPv6 one carries, since that one will answer."""
    if isinstance(address, IPv4Address):
        return address
    if address in NAT64:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour or address


class Trouble(StrEnum):
    UNREACHABLE = "unreachable"
    ADDRESS_REFUSED = "address_refused"
    TIMED_OUT = "timed_out"
    CERTIFICATE = "certificate"
    NOT_TAKEN = "not_taken"
    UNUSABLE = "unusable"
    KEY_LOST = "key_lost"
    CRASHED = "crashed"


# Answers of a service that will never take this message: repeating it would only hold up those behind it.
FINAL_ANSWERS = frozenset({400, 413, 415, 422})


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of one try; `answer` is the status of a refusal, if there was one."""

    trouble: Trouble | None = None
    answer: int | None = None
    # Whether trying again cannot help.
    is_final: bool = False

    @property
    def is_sent(self) -> bool:
        return self.trouble is None

    @property
    def is_refused(self) -> bool:
        """Whether the service was reached and did not take it, perhaps because of this very message."""
        return self.trouble is Trouble.NOT_TAKEN


@dataclass(frozen=True, slots=True)
class Message:
    """What is sent; `id` is the same at every try, and unique across installations."""

    id: str
    kind: str
    severity: str
    title: str
    body: str
    # Links of this product, which are not escaped as the text from devices is.
    footer: str = ""
    # A table for channels that carry files.
    csv: str = ""
    # A report, in base64, for channels that carry files.
    pdf: str = ""


if TYPE_CHECKING:
    from apprise import NotifyBase

LOG = logging.getLogger("apprise")
# Longer than every wait that apprise allows one request.
SEND_SECONDS = 30
FORBIDDEN = frozenset({"subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.fork", "socket.bind"})
# Services that answer 400 also when a chat has moved, or when they got too much in too short a time.
VAGUE_SCHEMES = frozenset({"tgram", "whatsapp"})
# Ports on which a mail server inside the network need not be listed.
MAIL_PORTS = frozenset({25, 465, 587, 2525})
MAIL_SCHEMES = frozenset({"mailto", "mailtos"})
# Where a name after an @ or a < mentions people, and brackets or an address make a link; a name that a device chose
# must do neither.
CHAT_SCHEMES = frozenset({"slack", "discord", "tgram", "workflows"})
UNJOINED = "\u200b"
_ACTIVE = re.compile(r"(?<=[@<])|(?<=\])(?=\()|(?<=:)(?=//)")
_MARKDOWN = re.compile(r"[\\`*_{}\[\]()#+\-.!|~>]")
_LINK_LINE = re.compile(r"^(.+?): (https?://\S+)$", re.MULTILINE)
CSV_NAME, PDF_NAME = "facho.csv", "facho-report.pdf"
# What services put around a title and a text.
MARGIN = 60
_STATUS = re.compile(r"error=(\d{3})\b")
_NO_WORD = re.compile(r"[^A-Za-z0-9-]+")


def open_service(url: str) -> "NotifyBase | None":
    """Build the service of an address; None when apprise cannot read it."""
    # It logs addresses, and addresses hold tokens.
    LOG.disabled = True
    # Importing takes half a second, which only senders and checks of an address should wait for.
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


def hand_over(service: "NotifyBase", scheme: str, message: Message) -> bool:
    """Send, and return whether the service took it."""
    from apprise import Apprise, NotifyFormat, NotifyType

    title, body, attached = message.title, message.body, []
    if scheme in MAIL_SCHEMES:
        from apprise.plugins.email import base

        # The same Message-ID at every try lets mail servers drop a second one. Apprise has no way to choose it;
        # this process sends one message and ends.
        vars(base)["make_msgid"] = lambda domain: f"<{_NO_WORD.sub('-', message.id)}@{domain}>"
        service.notify_format = NotifyFormat.TEXT
        from apprise.attachment.memory import AttachMemory

        if message.csv:
            attached.append(AttachMemory(content=message.csv, name=CSV_NAME, mimetype="text/csv"))  # type: ignore[no-untyped-call]
        if message.pdf:
            content = base64.b64decode(message.pdf)
            attached.append(AttachMemory(content=content, name=PDF_NAME, mimetype="application/pdf"))  # type: ignore[no-untyped-call]
    elif scheme in CHAT_SCHEMES:
        title, body = (_ACTIVE.sub(UNJOINED, text) for text in (title, body))
    footer, written_as = message.footer, NotifyFormat.TEXT
    if scheme == "workflows":
        # A card makes no link of a bare address, and apprise would escape ours together with the text.
        body, written_as = _MARKDOWN.sub(r"\\\g<0>", body).replace("\n", "\n\n"), NotifyFormat.MARKDOWN
        footer = _LINK_LINE.sub(r"[\1](\2)\n", footer)
    body = with_footer(body, footer, room=service.body_maxlen - len(title) - MARGIN)
    if scheme == "whatsapp":
        # Meta refuses a variable of a template that has a line break.
        title, body = "", " ".join(f"{title} · {body}".split())
    severities: dict[str, NotifyType] = {"critical": NotifyType.FAILURE, "warning": NotifyType.WARNING}
    look = NotifyType.SUCCESS if message.kind == "resolved" else severities.get(message.severity, NotifyType.INFO)
    client = Apprise(asset=service.asset)
    client.add(service)
    return bool(
        client.notify(title=title, body=body, notify_type=look, body_format=written_as, attach=attached or None)
    )


def with_footer(body: str, footer: str, *, room: int) -> str:
    """Put the links under the text, and shorten the text rather than the links."""
    if not footer:
        return body
    room = max(room - len(footer) - 2, 0)
    return f"{body if len(body) <= room else body[: max(room - 1, 0)] + '…'}\n\n{footer}"


class Guard:
    """Judges every connect of this process, whichever library makes it, when it is made."""

    def __init__(self, reach: Reach) -> None:
        self.reach = reach
        self.has_refused = False

    def watch(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Refuse what a sender has no business with; an audit hook cannot be removed again."""
        if event == "socket.connect":
            address = arguments[1]
            if not isinstance(address, tuple) or not self.reach.allows(str(address[0]), int(address[1])):
                self.has_refused = True
                raise AddressRefused("no message may be sent there")
        if event in FORBIDDEN:
            raise PermissionError("a sender sends and does nothing else")


class ReasonLog(logging.Handler):
    """Keeps of apprise's log what is no secret: whether a server was reached, and the status it refused with."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.outcome = Outcome(Trouble.NOT_TAKEN)

    def emit(self, record: logging.LogRecord) -> None:
        """Look for either in one line."""
        line = record.getMessage()
        if found := _STATUS.search(line):
            self.outcome = Outcome(Trouble.NOT_TAKEN, answer=int(found.group(1)))
        elif "Connection error" in line:
            self.outcome = Outcome(Trouble.UNREACHABLE)


def carry_out(job: dict[str, Any]) -> Outcome:
    scheme = str(job["url"]).partition("://")[0].lower()
    listed = read_networks(job["listed"])
    guard = Guard(Reach(listed, MAIL_PORTS if scheme in MAIL_SCHEMES else frozenset()))
    service, log = open_service(job["url"]), ReasonLog()
    if service is None:
        return Outcome(Trouble.UNUSABLE)
    LOG.disabled = False
    LOG.addHandler(log)
    sys.addaudithook(guard.watch)
    if hand_over(service, scheme, Message(**job["message"])):
        return Outcome()
    return Outcome(Trouble.ADDRESS_REFUSED) if guard.has_refused else judge(log.outcome, scheme)


def judge(outcome: Outcome, scheme: str) -> Outcome:
    """Mark an outcome as final when the service will never take this message."""
    is_vague = outcome.answer == HTTPStatus.BAD_REQUEST and scheme in VAGUE_SCHEMES
    return replace(outcome, is_final=outcome.answer in FINAL_ANSWERS and not is_vague)


def main() -> None:
    # The parent may be dead, so this process ends itself.
    signal.alarm(SEND_SECONDS)
    outcome = carry_out(json.load(sys.stdin.buffer))
    json.dump(asdict(outcome), sys.stdout)


if __name__ == "__main__":
    main()
