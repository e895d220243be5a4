"""The signed webhook: who receives it can prove who wrote it, that it is whole, fresh, and not the same one again."""

import hashlib
import hmac
import json
from typing import Any

from facho.alerts.http_request import send_request
from facho.alerts.outcome import FINAL_ANSWERS, Outcome
from facho.alerts.ssrf import Reach

ID_HEADER = "Facho-Id"
TIMESTAMP_HEADER = "Facho-Timestamp"
SIGNATURE_HEADER = "Facho-Signature"
# A key that can be guessed signs nothing.
KEY_CHARACTERS = 16


def sign(key: str, *, timestamp: int, message_id: str, body: bytes) -> str:
    """Return the signature over time, id and body; the prefix names the way it was made."""
    signed = f"{timestamp}.{message_id}.".encode() + body
    return "v1=" + hmac.new(key.encode(), signed, hashlib.sha256).hexdigest()


async def post_webhook(
    url: str, *, key: str, message_id: str, content: dict[str, Any], timestamp: int, reach: Reach
) -> Outcome:
    """Post one message; the id stays the same at each try, the time does not."""
    body = json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode()
    headers = {
        "Content-Type": "application/json; charset=utf-8",
        ID_HEADER: message_id,
        TIMESTAMP_HEADER: str(timestamp),
        SIGNATURE_HEADER: sign(key, timestamp=timestamp, message_id=message_id, body=body),
    }
    outcome = await send_request("POST", url, headers=headers, body=body, reach=reach)
    return Outcome(outcome.trouble, outcome.answer, is_final=outcome.answer in FINAL_ANSWERS)
