"""Hands one message to apprise, in a short-lived process that may connect to its service and do nothing else.

`delivery` starts it without settings or environment, so nothing here may import Django.
"""

import json
import logging
import re
import signal
import sys
from dataclasses import asdict, replace
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from facho.alerts.outcome import FINAL_ANSWERS, Message, Outcome, Trouble
from facho.alerts.ssrf import AddressRefused, Reach, read_networks

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
CSV_NAME = "facho.csv"
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
        if message.csv:
            from apprise.attachment.memory import AttachMemory

            attached.append(AttachMemory(content=message.csv, name=CSV_NAME, mimetype="text/csv"))  # type: ignore[no-untyped-call]
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
