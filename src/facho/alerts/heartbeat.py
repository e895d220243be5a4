"""Tells somebody outside every minute that polling goes on: a dead system cannot tell that it is dead."""

import logging

from facho.alerts.http_request import send_request

logger = logging.getLogger(__name__)


class Heartbeat:
    """Calls one address; of a row of failures the first is logged, and its end. The address itself never is."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._has_failed = False

    async def beat(self) -> None:
        """Call once. The operator of this machine chose the address, so that it may stand anywhere."""
        outcome = await send_request("GET", self._url, reach=None)
        if not outcome.is_sent and not self._has_failed:
            logger.warning("heartbeat.failed trouble=%s answer=%s", outcome.trouble, outcome.answer)
        if outcome.is_sent and self._has_failed:
            logger.info("heartbeat.works_again")
        self._has_failed = not outcome.is_sent
