"""Opens sessions, each with a socket and a share of memory of its own."""

from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any

from facho.polling.domain.collection import SendPermit
from facho.polling.snmp.ber import Oid, PduKind, Tag, VarBind, encode_message_raw, encode_questions
from facho.polling.snmp.courier import Courier
from facho.polling.snmp.errors import MissingObject, UnexpectedAnswer
from facho.polling.snmp.memory import Memory, Share
from facho.polling.snmp.session import NO_DEADLINE, Limits, Session, checked_varbinds
from facho.polling.snmp.target import CHEAP, Community, Patience, SnmpVersion, Target
from facho.polling.snmp.transport import CommunityTransport, UdpTransport
from facho.polling.snmp.user_security import LibraryWire, SealedTransport
from facho.polling.snmp.user_session import KnownEngines, UserSession

if TYPE_CHECKING:
    from facho.polling.snmp._pages import VarBindPage


class CommunitySession:
    """A v1/v2c session with one device. Its limits hold for everything it sends."""

    def __init__(
        self,
        transport: CommunityTransport,
        target: Target,
        community: Community,
        permit: SendPermit,
        limits: Limits,
        memory: Share,
    ) -> None:
        self.target = target
        self.limits = limits
        self._community = community
        self._transport = transport
        self._courier = Courier(transport, permit, limits, memory)
        self.memory = memory
        self.strays = transport.strays
        self.traffic = self._courier.traffic
        self.round_trips = self._courier.round_trips

    async def get(
        self, oids: Sequence[Oid], *, patience: Patience = CHEAP, deadline: float = NO_DEADLINE
    ) -> list[VarBind]:
        """Return one varbind per OID, in order; missing ones have an exception tag and no value."""
        found: dict[Oid, VarBind] = {}
        wanted = list(dict.fromkeys(oids))
        while wanted:
            try:
                # A page makes its varbinds again each time they are listed.
                varbinds = list(await self._ask(PduKind.GET, wanted, 0, patience, deadline))
            except MissingObject as error:
                # A v1 agent refuses the whole packet for one missing object: note it and ask for the others.
                if not error.index and len(wanted) > 1:
                    raise
                oid = wanted[error.index - 1]
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
    ) -> "VarBindPage":
        """Return the successors of the OIDs, row by row: GETBULK, or one row by GETNEXT for v1."""
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
        await self._courier.close()

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

    def __init__(self, memory: Memory | None = None) -> None:
        self.memory = memory or Memory()
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
            self.transports.append(plain)
            return CommunitySession(plain, target, credential, permit, limits, self.memory.open(target.address))
        self._wire = self._wire or LibraryWire()
        sealed = SealedTransport(
            peer, self._wire, source_address=source, on_close=lambda: self.transports.remove(sealed)
        )
        self.transports.append(sealed)
        memory = self.memory.open(target.address)
        return UserSession(sealed, target, credential, permit, limits, self._engines, memory)

    def close(self) -> None:
        """Close every socket; exchanges in progress end with SessionClosed."""
        for transport in list(self.transports):
            transport.close()
        if self._wire is not None:
            self._wire.close()
            self._wire = None
