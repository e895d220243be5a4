"""Sessions of SNMP v1 and v2c over the shared socket."""

import asyncio
from collections.abc import Sequence

from facho.polling.domain.collection import SendPermit
from facho.polling.snmp.ber import Message, Oid, PduKind, Tag, VarBind, encode_message_raw, encode_varbinds
from facho.polling.snmp.errors import (
    AccessDenied,
    AgentError,
    AgentTimeout,
    BudgetSpent,
    MissingObject,
    SessionClosed,
    SnmpError,
    TooBig,
    UnexpectedAnswer,
)
from facho.polling.snmp.oid import format_oid
from facho.polling.snmp.pace import Pace
from facho.polling.snmp.session import NO_DEADLINE, Limits, Traffic
from facho.polling.snmp.target import CHEAP, Patience, SnmpVersion, Target
from facho.polling.snmp.transport import Pending, UdpTransport

_STATUS_NAMES = {
    1: "tooBig",
    2: "noSuchName",
    3: "badValue",
    4: "readOnly",
    5: "genErr",
    6: "noAccess",
    13: "resourceUnavailable",
    16: "authorizationError",
}
_STATUS_ERRORS: dict[int, type[AgentError]] = {1: TooBig, 2: MissingObject, 6: AccessDenied, 16: AccessDenied}


class CommunitySession:
    """One device, one holder of the right to send to it. Limits hold for everything that this session sends."""

    def __init__(self, transport: UdpTransport, target: Target, permit: SendPermit, limits: Limits) -> None:
        self.target = target
        self.limits = limits
        self.traffic = Traffic()
        self._transport = transport
        self._permit = permit
        self._peer = (target.address, target.port)
        self._slots = asyncio.Semaphore(limits.max_in_flight)
        self._pace = Pace(limits.packets_per_second)
        self._open: set[Pending] = set()
        self._is_closed = False

    async def get(
        self, oids: Sequence[Oid], *, patience: Patience = CHEAP, deadline: float = NO_DEADLINE
    ) -> list[VarBind]:
        """Return one varbind for each OID, in order; what is missing has an exception tag and no value."""
        found: dict[Oid, VarBind] = {}
        wanted = list(dict.fromkeys(oids))
        while wanted:
            try:
                varbinds = await self._ask(PduKind.GET, wanted, 0, patience, deadline)
            except MissingObject as error:
                # A v1 agent refuses the whole packet for one missing object: note it and ask for the others.
                oid = _blamed(wanted, error)
                found[oid] = (oid, Tag.NO_SUCH_INSTANCE, None)
                wanted.remove(oid)
                continue
            if [varbind[0] for varbind in varbinds] != wanted:
                raise UnexpectedAnswer(f"{self.target.address} answered with other OIDs than asked")
            found.update(zip(wanted, varbinds, strict=True))
            break
        return [found[oid] for oid in oids]

    async def next_page(
        self, oids: Sequence[Oid], repetitions: int, *, patience: Patience = CHEAP, deadline: float = NO_DEADLINE
    ) -> list[VarBind]:
        """Return the successors of the OIDs, row by row: GETBULK, or one row by GETNEXT from a v1 agent."""
        if self.target.version is SnmpVersion.V1:
            varbinds = await self._ask(PduKind.GET_NEXT, oids, 0, patience, deadline)
            repetitions = 1
        else:
            # Zero repetitions hang some agents, and ask for nothing.
            repetitions = max(1, repetitions)
            varbinds = await self._ask(PduKind.GET_BULK, oids, repetitions, patience, deadline)
        if len(varbinds) > len(oids) * repetitions:
            raise UnexpectedAnswer(f"{self.target.address} answered with more rows than asked")
        return varbinds

    async def close(self) -> None:
        """End what is under way; the shared socket stays."""
        self._is_closed = True
        for pending in list(self._open):
            pending.settle(SessionClosed("the session was closed"))

    async def _ask(
        self, kind: PduKind, oids: Sequence[Oid], repetitions: int, patience: Patience, deadline: float
    ) -> list[VarBind]:
        async with self._slots:
            if self._is_closed:
                raise SessionClosed("the session is closed")
            pending = self._transport.open_request(self._peer, self.target.version)
            self._open.add(pending)
            try:
                payload = self._encode(kind, pending.request_id, oids, repetitions)
                message = await self._exchange(pending, payload, patience, deadline)
            finally:
                self._open.discard(pending)
                self._transport.close_request(pending)
        return self._checked(message, oids)

    def _encode(self, kind: PduKind, request_id: int, oids: Sequence[Oid], repetitions: int) -> bytes:
        varbinds = encode_varbinds((oid, Tag.NULL, None) for oid in oids)
        secret = self.target.credential.secret
        return encode_message_raw(self.target.version, secret, kind, request_id, 0, repetitions, varbinds)

    async def _exchange(self, pending: Pending, payload: bytes, patience: Patience, deadline: float) -> Message:
        """Send the same bytes up to `tries` times, each only after the time-out of the one before."""
        loop = asyncio.get_running_loop()
        for attempt in range(patience.tries):
            await self._pace.wait_turn(deadline)
            wait_s = min(patience.timeout_s, deadline - loop.time())
            if wait_s <= 0:
                raise BudgetSpent(f"no time left to ask {self.target.address}")
            self._send(pending, payload, is_repeat=attempt > 0)
            await asyncio.wait((pending.outcome,), timeout=wait_s)
            if pending.outcome.done():
                return self._received(pending.outcome.result())
        if pending.garbage is not None:
            raise pending.garbage
        if loop.time() >= deadline:
            raise BudgetSpent(f"{self.target.address} did not answer in the time left")
        raise AgentTimeout(f"{self.target.address} did not answer {patience.tries} x {patience.timeout_s:g} s")

    def _send(self, pending: Pending, payload: bytes, *, is_repeat: bool) -> None:
        if self._is_closed:
            raise SessionClosed("the session is closed")
        self._transport.send(pending, payload, self._permit)
        self.traffic.packets += 1
        self.traffic.retransmissions += is_repeat
        self.traffic.bytes_sent += len(payload)

    def _received(self, outcome: tuple[Message, int] | SnmpError) -> Message:
        if isinstance(outcome, SnmpError):
            raise outcome
        message, size = outcome
        self.traffic.bytes_received += size
        self.traffic.varbinds += len(message.pdu.varbinds)
        return message

    def _checked(self, message: Message, oids: Sequence[Oid]) -> list[VarBind]:
        pdu = message.pdu
        if not pdu.error_status:
            return list(pdu.varbinds)
        index = pdu.error_index if 0 < pdu.error_index <= len(oids) else 0
        name = _STATUS_NAMES.get(pdu.error_status, f"error status {pdu.error_status}")
        where = f" at {format_oid(oids[index - 1])}" if index else ""
        error = _STATUS_ERRORS.get(pdu.error_status, AgentError)
        raise error(f"{self.target.address} answered {name}{where}", status=pdu.error_status, index=index)


def _blamed(oids: Sequence[Oid], error: MissingObject) -> Oid:
    if error.index:
        return oids[error.index - 1]
    if len(oids) == 1:
        return oids[0]
    raise error
