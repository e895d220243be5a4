"""The process that hands one message to apprise: it may reach what it should and nothing else, and ends by itself.

It reads one JSON object and writes one. Apart from the product's other processes it cannot stall them, can be ended
at any time, holds one address, and shows no log to anybody.
"""

import json
import logging
import re
import signal
import sys
from dataclasses import asdict, replace
from http import HTTPStatus
from typing import Any

from facho.alerts.apprise_service import LOG, MAIL_PORTS, MAIL_SCHEMES, hand_over, open_service
from facho.alerts.outcome import FINAL_ANSWERS, Message, Outcome, Trouble
from facho.alerts.ssrf import AddressRefused, Reach, read_networks

# Longer than every wait that apprise allows one request.
SEND_SECONDS = 30
FORBIDDEN = frozenset({"subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.fork", "socket.bind"})
# Services that answer 400 also when a chat has moved, or when they had too much in too short a time.
VAGUE_SCHEMES = frozenset({"tgram", "whatsapp"})
_STATUS = re.compile(r"error=(\d{3})\b")


class Guard:
    """Judges every connect of this process, whichever library makes it, at the moment it is made."""

    def __init__(self, reach: Reach) -> None:
        self.reach = reach
        self.has_refused = False

    def watch(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Refuse what a sender has no business with; an audit hook cannot be taken out again."""
        if event == "socket.connect" and not self._allows(arguments[1]):
            self.has_refused = True
            raise AddressRefused("no message may be sent there")
        if event in FORBIDDEN:
            raise PermissionError("a sender sends and does nothing else")

    def _allows(self, address: Any) -> bool:
        return isinstance(address, tuple) and self.reach.allows(str(address[0]), int(address[1]))


class ReasonLog(logging.Handler):
    """Keeps of apprise's log what is no secret: whether a server was reached, and with which status it refused."""

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
    """Send the message of a job."""
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
    return Outcome(Trouble.ADDRESS_REFUSED) if guard.has_refused else _judge(log.outcome, scheme)


def _judge(outcome: Outcome, scheme: str) -> Outcome:
    is_vague = outcome.answer == HTTPStatus.BAD_REQUEST and scheme in VAGUE_SCHEMES
    return replace(outcome, is_final=outcome.answer in FINAL_ANSWERS and not is_vague)


def main() -> None:
    """Carry out the job that stands on standard input."""
    # Whoever started this may be dead; nobody else would end it.
    signal.alarm(SEND_SECONDS)
    outcome = carry_out(json.load(sys.stdin.buffer))
    json.dump(asdict(outcome), sys.stdout)


if __name__ == "__main__":
    main()
