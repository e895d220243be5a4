"""One try of one message: a webhook from here, everything else through the process that sends."""

import asyncio
import json
import sys
from contextlib import suppress
from dataclasses import asdict
from datetime import datetime
from typing import Any

from facho.alerts.models import ChannelKind
from facho.alerts.outbox import Address, Parcel
from facho.alerts.outcome import Message, Outcome, Trouble
from facho.alerts.sender import SEND_SECONDS
from facho.alerts.ssrf import Reach
from facho.alerts.webhook import post_webhook

# The process ends itself; this is for one that cannot.
PATIENCE_SECONDS = SEND_SECONDS + 5.0
# No proxy, no .netrc, and no folder of ours in front of the installed packages.
COMMAND = (sys.executable, "-I", "-m", "facho.alerts.sender")
ENVIRONMENT = {"HOME": "/nonexistent"}


async def send(parcel: Parcel, reach: Reach, *, now: datetime) -> Outcome:
    """Try once, in bounded time; whatever goes wrong is an outcome."""
    address = parcel.address
    if address is None:
        return Outcome(Trouble.KEY_LOST)
    if address.kind is ChannelKind.WEBHOOK:
        return await _post(parcel, address, reach, now=now)
    return await _hand_to_process(address, parcel.message, reach)


async def _post(parcel: Parcel, address: Address, reach: Reach, *, now: datetime) -> Outcome:
    return await post_webhook(
        address.url.reveal(),
        key=address.signing_key.reveal(),
        message_id=parcel.message.id,
        content=webhook_content(parcel),
        timestamp=int(now.timestamp()),
        reach=reach,
    )


def webhook_content(parcel: Parcel) -> dict[str, Any]:
    """Build what a webhook receives."""
    message = parcel.message
    return {
        "id": message.id,
        "kind": message.kind,
        "severity": message.severity,
        "title": message.title,
        "text": message.body,
        "written_at": parcel.written_at.isoformat(),
        "details": parcel.payload,
    }


async def _hand_to_process(address: Address, message: Message, reach: Reach) -> Outcome:
    job = {"url": address.url.reveal(), "listed": [str(each) for each in reach.listed], "message": asdict(message)}
    pipe, nowhere = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
    # In a session of its own: Ctrl-C at a terminal must not end a message half-way.
    process = await asyncio.create_subprocess_exec(
        *COMMAND, stdin=pipe, stdout=pipe, stderr=nowhere, env=ENVIRONMENT, start_new_session=True
    )
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            answer, _nothing = await process.communicate(json.dumps(job).encode())
    except TimeoutError:
        return Outcome(Trouble.TIMED_OUT)
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
    return _read_answer(process.returncode, answer)


def _read_answer(exit_code: int | None, answer: bytes) -> Outcome:
    if exit_code != 0:
        # Ended by its own alarm, or by something that nobody foresaw.
        return Outcome(Trouble.TIMED_OUT if exit_code and exit_code < 0 else Trouble.CRASHED)
    told = json.loads(answer)
    return Outcome(Trouble(told["trouble"]) if told["trouble"] else None, told["answer"], told["is_final"])
