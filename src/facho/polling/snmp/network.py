"""Sessions of v1, v2c and v3 with one device, each opened with a socket and a share of memory of its own."""

import asyncio
import math
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any

from facho.polling.domain.collection import SendPermit
from facho.polling.snmp import errors, pages
from facho.polling.snmp.ber import Oid, Pdu, PduKind, SnmpMessage, Tag, VarBind, encode_message_raw, encode_questions
from facho.polling.snmp.memory import Memory
from facho.polling.snmp.oid import USM_STATS, is_under
from facho.polling.snmp.session import NO_DEADLINE, Courier, GiveWay, Limits, Session, checked_varbinds
from facho.polling.snmp.target import CHEAP, Community, Patience, SnmpVersion, Target, UserCredential
from facho.polling.snmp.transport import Answer, CommunityTransport, Strays, UdpTransport
from facho.polling.snmp.user_security import (
    Envelope,
    LibraryWire,
    Opened,
    Opener,
    SealedTransport,
    Sealer,
    SnmpEngine,
    decode_envelope,
    make_engine,
    open_answer,
    open_report,
    read_content,
)

if TYPE_CHECKING:
    from facho.polling.snmp._pages import VarBindPage

# Some 500 bytes each: enough for any network that one process polls.
MAX_ENGINES = 4_096


class KnownEngines:
    """Cache of engines by device and credential; the least recently used is evicted."""

    def __init__(self, limit: int = MAX_ENGINES) -> None:
        self._limit = limit
        self._engines: OrderedDict[object, SnmpEngine] = OrderedDict()

    def __len__(self) -> int:
        return len(self._engines)

    def find(self, target: Target) -> SnmpEngine | None:
        """Return the known engine of a device for this credential: other keys mean another engine."""
        key = _key(target)
        if key in self._engines:
            self._engines.move_to_end(key)
        return self._engines.get(key)

    def remember(self, target: Target, engine: SnmpEngine) -> None:
        self._engines[_key(target)] = engine
        if len(self._engines) > self._limit:
            self._engines.popitem(last=False)

    def forget(self, target: Target) -> None:
        self._engines.pop(_key(target), None)


def _key(target: Target) -> object:
    return target.address, target.port, target.credential


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
    engine: SnmpEngine
    sealer: Sealer
    clock_read_at: float = -math.inf


class EngineLink:
    """One session's knowledge of its agent, and the exchange of sealed messages with it."""

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
        """Return the response; None if the agent reported that our knowledge of it is outdated."""
        state = await self._prepared(patience, deadline)
        if state is None:
            return None
        try:
            opened = await self._exchange(lambda: seal(state.sealer), state.engine, patience, deadline)
        except errors.AgentTimeout:
            # An agent that was restarted may drop what does not fit its new clock without a word.
            state.clock_read_at = -math.inf
            raise
        if opened.is_report:
            self._heed(opened, state)
            return None
        return opened

    def close(self) -> None:
        if self._state is not None:
            self._state.sealer.close()
            self._state = None

    async def _prepared(self, patience: Patience, deadline: float) -> _State | None:
        async with self._preparing:
            self._courier.check_open()
            state = self._state
            if state is None:
                engine = self._engines.find(self._target)
                if engine is None:
                    engine = make_engine(self._credential, await self._discover(patience, deadline))
                    self._engines.remember(self._target, engine)
                self._courier.check_open()
                state = self._state = _State(engine, Sealer(self._transport.wire, self._credential, engine))
            age_s = asyncio.get_running_loop().time() - state.clock_read_at
            if self._credential.auth_protocol and age_s > CLOCK_GOOD_FOR_SECONDS:
                return state if await self._read_clock(state, patience, deadline) else None
            return state

    async def _discover(self, patience: Patience, deadline: float) -> bytes:
        """Send an anonymous request, which any agent answers with its engine id."""
        self._courier.check_open()
        nobody = Sealer(self._transport.wire, None, SnmpEngine(b""))
        try:
            opened = await self._exchange(nobody.seal_refresh, None, patience, deadline)
        finally:
            nobody.close()
        return opened.envelope.engine_id

    async def _read_clock(self, state: _State, patience: Patience, deadline: float) -> bool:
        """Set the library's clock from a signed answer; False if the engine turned out to be another."""
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
        except errors.AgentTimeout:
            # It may be another device by now, deaf to the old one's name.
            self._start_over()
            raise
        if opened.envelope.is_authenticated:
            self._courier.check_open()
            state.sealer.take_clock(opened.envelope.data)
        elif _reason(opened.pdu) == _STALE_CLOCK:
            raise errors.UnexpectedAnswer(f"{self._target.address} tells its clock without a signature")
        return opened

    async def _prove_privacy(self, state: _State, patience: Patience, deadline: float) -> Opened:
        """Refresh with the right clock: agents decrypt only then, and some silently drop what they cannot decrypt."""
        try:
            return await self._refresh(state, patience, deadline)
        except errors.BudgetSpent:
            raise
        except errors.AgentTimeout as silence:
            if patience.tries < 2:
                raise
            # Raises the same silence when the agent is gone.
            await self._discover(patience, deadline)
            raise self._denial(_CANNOT_DECRYPT) from silence

    async def _exchange(
        self, seal: Callable[[], bytes], engine: SnmpEngine | None, patience: Patience, deadline: float
    ) -> Opened:
        self._courier.check_open()
        payload = seal()
        while not self._transport.is_free(decode_envelope(payload).message_id):
            payload = seal()
        question = decode_envelope(payload)
        opener = open_report if engine is None else self._opener(question, engine)
        pending = self._transport.open_request(question.message_id, opener)
        return await self._courier.deliver(pending, payload, patience, deadline)

    def _opener(self, question: Envelope, engine: SnmpEngine) -> Opener:
        request_id = read_content(question, self._credential, engine).request_id

        def open_if_answer(envelope: Envelope) -> Opened:
            opened = open_answer(envelope, self._credential, engine)
            if not opened.is_report and opened.pdu.request_id != request_id:
                raise errors.ForgedAnswer("another question")
            return opened

        return open_if_answer

    def _heed(self, report: Opened, state: _State) -> None:
        """Forget outdated knowledge, or raise the error of a report."""
        reason = _reason(report.pdu)
        if reason == _STALE_CLOCK:
            state.clock_read_at = -math.inf
        elif reason == _OTHER_ENGINE:
            self._start_over()
        elif reason in _DENIALS:
            raise self._denial(reason)
        else:
            raise errors.AgentError(f"{self._target.address} does not take our message")

    def _denial(self, reason: int) -> errors.UserRefused:
        return errors.UserRefused(f"{self._target.address} {_DENIALS[reason]}", statistic=reason)

    def _start_over(self) -> None:
        self._engines.forget(self._target)
        self.close()


def _reason(pdu: Pdu) -> int:
    """Return the number of the reported usmStats counter; 0 for anything else."""
    if pdu.kind is not PduKind.REPORT or not pdu.varbinds:
        return 0
    oid = pdu.varbinds[0][0]
    return oid[len(USM_STATS)] if is_under(oid, USM_STATS) else 0


# An agent may report another engine, then another clock; after more reports it is given up.
_FRESH_STARTS = 3


class UserSession(Session):
    def __init__(
        self, link: EngineLink, courier: Courier[Opened], target: Target, limits: Limits, strays: Strays
    ) -> None:
        super().__init__(courier, target, limits, strays)
        self._link = link

    async def get(
        self, oids: Sequence[Oid], *, patience: Patience = CHEAP, deadline: float = NO_DEADLINE
    ) -> list[VarBind]:
        wanted = list(dict.fromkeys(oids))
        if not wanted:
            return []
        varbinds = await self._ask(lambda sealer: sealer.seal_get(wanted), wanted, patience, deadline)
        if [varbind[0] for varbind in varbinds] != wanted:
            raise errors.UnexpectedAnswer(f"{self.target.address} answered with other OIDs than asked")
        found = dict(zip(wanted, varbinds, strict=True))
        return [found[oid] for oid in oids]

    async def next_page(
        self, oids: Sequence[Oid], repetitions: int, *, patience: Patience = CHEAP, deadline: float = NO_DEADLINE
    ) -> "VarBindPage":
        rows = max(1, repetitions)
        columns: list[VarBindPage] = []
        for oid in oids:
            column = await self._next_of_column(oid, rows, patience, deadline)
            if not column:
                return column
            columns.append(column)
            # What one column cannot give in a message need not be asked of the others; but an end is an end in every
            # further row, and others may have more to say.
            if column[-1][1] != Tag.END_OF_MIB_VIEW:
                rows = len(column)
        return pages.decoder.weave(columns, rows)

    async def close(self) -> None:
        await super().close()
        self._link.close()

    async def _next_of_column(self, oid: Oid, rows: int, patience: Patience, deadline: float) -> "VarBindPage":
        page = await self._ask(lambda sealer: sealer.seal_get_bulk(oid, rows), [oid], patience, deadline)
        if len(page) > rows:
            raise errors.UnexpectedAnswer(f"{self.target.address} answered with more rows than asked")
        return page

    async def _ask(self, seal: Seal, oids: Sequence[Oid], patience: Patience, deadline: float) -> "VarBindPage":
        async with self._courier.slots:
            for _ in range(_FRESH_STARTS):
                opened = await self._link.ask(seal, patience, deadline)
                if opened is not None:
                    return checked_varbinds(opened.pdu, oids, self.target.address)
        raise errors.AgentError(f"{self.target.address} keeps saying that its engine or its clock is another")


class CommunitySession(Session):
    """Asks v1 and v2c agents."""

    def __init__(
        self,
        transport: CommunityTransport,
        courier: Courier[SnmpMessage],
        target: Target,
        limits: Limits,
        community: Community,
    ) -> None:
        super().__init__(courier, target, limits, transport.strays)
        self._community = community
        self._transport = transport

    async def get(
        self, oids: Sequence[Oid], *, patience: Patience = CHEAP, deadline: float = NO_DEADLINE
    ) -> list[VarBind]:
        found: dict[Oid, VarBind] = {}
        wanted = list(dict.fromkeys(oids))
        while wanted:
            try:
                # A page makes its varbinds again each time they are listed.
                varbinds = list(await self._ask(PduKind.GET, wanted, 0, patience, deadline))
            except errors.MissingObject as error:
                # A v1 agent refuses the whole packet for one missing object: note it and ask for the others.
                if not error.index and len(wanted) > 1:
                    raise
                oid = wanted[error.index - 1]
                found[oid] = (oid, Tag.NO_SUCH_INSTANCE, None)
                wanted.remove(oid)
                continue
            if [varbind[0] for varbind in varbinds] != wanted:
                raise errors.UnexpectedAnswer(f"{self.target.address} answered with other OIDs than asked")
            found.update(zip(wanted, varbinds, strict=True))
            break
        return [found[oid] for oid in oids]

    async def next_page(
        self, oids: Sequence[Oid], repetitions: int, *, patience: Patience = CHEAP, deadline: float = NO_DEADLINE
    ) -> "VarBindPage":
        if self.target.version is SnmpVersion.V1:
            varbinds = await self._ask(PduKind.GET_NEXT, oids, 0, patience, deadline)
            repetitions = 1
        else:
            # Zero repetitions hang some agents, and ask for nothing.
            repetitions = max(1, repetitions)
            varbinds = await self._ask(PduKind.GET_BULK, oids, repetitions, patience, deadline)
        if len(varbinds) > len(oids) * repetitions:
            raise errors.UnexpectedAnswer(f"{self.target.address} answered with more rows than asked")
        return varbinds

    async def _ask(
        self, kind: PduKind, oids: Sequence[Oid], repetitions: int, patience: Patience, deadline: float
    ) -> "VarBindPage":
        async with self._courier.slots:
            self._courier.check_open()
            request_id = self._transport.new_id()
            questions = encode_questions(oids)
            secret = self._community.secret
            payload = encode_message_raw(self.target.version, secret, kind, request_id, 0, repetitions, questions)
            pending = self._transport.open_request(request_id, self.target.version)
            message = await self._courier.deliver(pending, payload, patience, deadline)
        return checked_varbinds(message.pdu, oids, self.target.address)


_NO_LIMITS_SAID = Limits()


class Network:
    """The sockets of one event loop, one per open session. Use as `async with Network() as network:`."""

    def __init__(self, memory: Memory | None = None, give_way: GiveWay | None = None) -> None:
        self.memory = memory or Memory()
        self._give_way = give_way
        # The open sockets, in the order of their sessions; for their counters.
        self.transports: list[UdpTransport[Any]] = []
        self._engines = KnownEngines()
        self._wire: LibraryWire | None = None

    async def __aenter__(self) -> "Network":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def open(self, target: Target, permit: SendPermit, limits: Limits = _NO_LIMITS_SAID) -> Session:
        """Open a session; nothing is sent before the first request.

        NoSource if the source address is not one of this machine, NoSocket if no socket is left.
        """
        peer, source, credential = (target.address, target.port), target.source_address, target.credential
        if isinstance(credential, Community):
            plain = CommunityTransport(
                peer, credential.secret, source_address=source, on_close=lambda: self.transports.remove(plain)
            )
            asking = self._courier(plain, permit, limits, target)
            return CommunitySession(plain, asking, target, limits, credential)
        self._wire = self._wire or LibraryWire()
        sealed = SealedTransport(
            peer, self._wire, source_address=source, on_close=lambda: self.transports.remove(sealed)
        )
        courier = self._courier(sealed, permit, limits, target)
        link = EngineLink(sealed, courier, target, credential, self._engines)
        return UserSession(link, courier, target, limits, sealed.strays)

    def _courier(
        self, transport: UdpTransport[Answer], permit: SendPermit, limits: Limits, target: Target
    ) -> Courier[Answer]:
        self.transports.append(transport)
        return Courier(transport, permit, limits, self.memory.open(target.address), self._give_way)

    def close(self) -> None:
        """Close every socket; exchanges in progress end with SessionClosed."""
        for transport in list(self.transports):
            transport.close()
        if self._wire is not None:
            self._wire.close()
            self._wire = None
