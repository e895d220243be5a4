"""What has to be found out before a v3 agent can be asked, and asked again when it changes: its engine and its clock.

Each step is a packet like any other. Engines are remembered beyond the session; the clock is read by every one.
"""

import asyncio
import math
from collections.abc import Callable
from dataclasses import dataclass

from facho.polling.snmp.ber import Pdu, PduKind
from facho.polling.snmp.courier import Courier
from facho.polling.snmp.envelope import Envelope, decode_envelope
from facho.polling.snmp.errors import (
    AgentError,
    AgentTimeout,
    BudgetSpent,
    ForgedAnswer,
    UnexpectedAnswer,
    UserRefused,
)
from facho.polling.snmp.known_engines import KnownEngines
from facho.polling.snmp.oid import USM_STATS, is_under
from facho.polling.snmp.sealed_transport import Opener, SealedTransport
from facho.polling.snmp.sealing import Sealer
from facho.polling.snmp.target import Patience, Target, UserCredential
from facho.polling.snmp.user_security import Engine, Opened, make_engine, open_answer, open_report, read_content

# Agents refuse what is 150 s off their clock; the library's stands still between two looks at it, and a question
# may be repeated for a while after it was sealed.
CLOCK_GOOD_FOR_SECONDS = 90.0

_STALE_CLOCK = 2
_OTHER_ENGINE = 4
_CANNOT_DECRYPT = 6
_DENIALS = {
    1: "does not offer this user the security level",
    3: "does not know the user",
    5: "says that the authentication key or protocol is wrong",
    _CANNOT_DECRYPT: "cannot decrypt: the privacy key or protocol is wrong",
}

Seal = Callable[[Sealer], bytes]


@dataclass(slots=True)
class _State:
    """The agent as we know it."""

    engine: Engine
    sealer: Sealer
    clock_read_at: float = -math.inf


class EngineLink:
    """One session's knowledge of its agent, and the way to exchange sealed messages with it."""

    def __init__(
        self,
        transport: SealedTransport,
        courier: Courier[Opened],
        target: Target,
        credential: UserCredential,
        engines: KnownEngines,
    ) -> None:
        self._transport = transport
        self._courier = courier
        self._target = target
        self._credential = credential
        self._engines = engines
        self._state: _State | None = None
        self._preparing = asyncio.Lock()

    async def ask(self, seal: Seal, patience: Patience, deadline: float) -> Opened | None:
        """Return the response to a question; None when the agent told that what we knew of it no longer holds."""
        state = await self._prepared(patience, deadline)
        if state is None:
            return None
        try:
            opened = await self._exchange(lambda: seal(state.sealer), state.engine, patience, deadline)
        except AgentTimeout:
            # An agent that was restarted may drop what does not fit its new clock without a word.
            state.clock_read_at = -math.inf
            raise
        if opened.is_report:
            self._heed(opened, state)
            return None
        return opened

    def close(self) -> None:
        """Forget the agent."""
        if self._state is not None:
            self._state.sealer.close()
            self._state = None

    async def _prepared(self, patience: Patience, deadline: float) -> _State | None:
        async with self._preparing:
            self._courier.check_open()
            state = self._state or await self._connect(patience, deadline)
            age_s = asyncio.get_running_loop().time() - state.clock_read_at
            if self._credential.auth_protocol and age_s > CLOCK_GOOD_FOR_SECONDS:
                return state if await self._read_clock(state, patience, deadline) else None
            return state

    async def _connect(self, patience: Patience, deadline: float) -> _State:
        engine = self._engines.find(self._target)
        if engine is None:
            engine = make_engine(self._credential, await self._discover(patience, deadline))
            self._engines.remember(self._target, engine)
        self._courier.check_open()
        self._state = _State(engine, Sealer(self._transport.wire, self._credential, engine))
        return self._state

    async def _discover(self, patience: Patience, deadline: float) -> bytes:
        """Ask as nobody, which any agent answers with its engine's id."""
        self._courier.check_open()
        nobody = Sealer(self._transport.wire, None, Engine(b""))
        try:
            opened = await self._exchange(nobody.seal_refresh, None, patience, deadline)
        finally:
            nobody.close()
        return opened.envelope.engine_id

    async def _read_clock(self, state: _State, patience: Patience, deadline: float) -> bool:
        """Set the library's clock by a signed answer; False when the engine turned out to be another."""
        opened = await self._refresh(state, patience, deadline)
        if self._credential.priv_protocol and _reason(opened.pdu) == _STALE_CLOCK:
            opened = await self._prove_privacy(state, patience, deadline)
        if opened.is_report and _reason(opened.pdu) != _STALE_CLOCK:
            self._heed(opened, state)
            return False
        state.clock_read_at = asyncio.get_running_loop().time()
        return True

    async def _refresh(self, state: _State, patience: Patience, deadline: float) -> Opened:
        try:
            opened = await self._exchange(state.sealer.seal_refresh, state.engine, patience, deadline)
        except AgentTimeout:
            # It may be another device by now, deaf to the old one's name.
            self._start_over()
            raise
        if opened.envelope.is_authenticated:
            self._courier.check_open()
            state.sealer.take_clock(opened.envelope.data)
        elif _reason(opened.pdu) == _STALE_CLOCK:
            raise UnexpectedAnswer(f"{self._target.address} tells its clock without a signature")
        return opened

    async def _prove_privacy(self, state: _State, patience: Patience, deadline: float) -> Opened:
        """Refresh on the right clock: agents decrypt only then. Some drop what they cannot decrypt without a word."""
        try:
            return await self._refresh(state, patience, deadline)
        except BudgetSpent:
            raise
        except AgentTimeout as silence:
            if patience.tries < 2:
                raise
            # Raises the same silence when the agent is gone.
            await self._discover(patience, deadline)
            raise self._denial(_CANNOT_DECRYPT) from silence

    async def _exchange(
        self, seal: Callable[[], bytes], engine: Engine | None, patience: Patience, deadline: float
    ) -> Opened:
        self._courier.check_open()
        payload = seal()
        while not self._transport.is_free(decode_envelope(payload).message_id):
            payload = seal()
        question = decode_envelope(payload)
        opener = open_report if engine is None else self._opener(question, engine)
        pending = self._transport.open_request(self._courier.peer, question.message_id, opener)
        return await self._courier.deliver(pending, payload, patience, deadline)

    def _opener(self, question: Envelope, engine: Engine) -> Opener:
        request_id = read_content(question, self._credential, engine).request_id

        def open_if_answer(envelope: Envelope) -> Opened:
            opened = open_answer(envelope, self._credential, engine)
            if not opened.is_report and opened.pdu.request_id != request_id:
                raise ForgedAnswer("an answer to another question")
            return opened

        return open_if_answer

    def _heed(self, report: Opened, state: _State) -> None:
        """Forget what no longer holds, or raise what a report means."""
        reason = _reason(report.pdu)
        if reason == _STALE_CLOCK:
            state.clock_read_at = -math.inf
        elif reason == _OTHER_ENGINE:
            self._start_over()
        elif reason in _DENIALS:
            raise self._denial(reason)
        else:
            raise AgentError(f"{self._target.address} does not take our message")

    def _denial(self, reason: int) -> UserRefused:
        return UserRefused(f"{self._target.address} {_DENIALS[reason]}", statistic=reason)

    def _start_over(self) -> None:
        self._engines.forget(self._target)
        self.close()


def _reason(pdu: Pdu) -> int:
    """Return the number of the counter that a report shows; 0 when it is none of user security, or no report."""
    if pdu.kind is not PduKind.REPORT or not pdu.varbinds:
        return 0
    oid = pdu.varbinds[0][0]
    return oid[len(USM_STATS)] if is_under(oid, USM_STATS) else 0
