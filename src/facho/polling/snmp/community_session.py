"""Sessions of SNMP v1 and v2c over the shared socket."""

from collections.abc import Sequence

from facho.polling.domain.collection import SendPermit
from facho.polling.snmp.ber import Oid, PduKind, Tag, VarBind, encode_message_raw, encode_questions
from facho.polling.snmp.courier import Courier
from facho.polling.snmp.error_status import checked_varbinds
from facho.polling.snmp.errors import MissingObject, UnexpectedAnswer
from facho.polling.snmp.session import NO_DEADLINE, Limits
from facho.polling.snmp.target import CHEAP, Community, Patience, SnmpVersion, Target
from facho.polling.snmp.transport import CommunityTransport


class CommunitySession:
    """One device, one holder of the right to send to it. Limits hold for everything that this session sends."""

    def __init__(
        self, transport: CommunityTransport, target: Target, community: Community, permit: SendPermit, limits: Limits
    ) -> None:
        self.target = target
        self.limits = limits
        self._community = community
        self._transport = transport
        self._courier = Courier(transport, target, permit, limits)
        self.traffic = self._courier.traffic
        self.round_trips = self._courier.round_trips

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
        self._courier.close()

    async def _ask(
        self, kind: PduKind, oids: Sequence[Oid], repetitions: int, patience: Patience, deadline: float
    ) -> list[VarBind]:
        async with self._courier.slots:
            self._courier.check_open()
            request_id = self._transport.next_request_id()
            payload = self._encode(kind, request_id, oids, repetitions)
            pending = self._transport.open_request(self._courier.peer, request_id, self.target.version)
            message = await self._courier.deliver(pending, payload, patience, deadline)
        self.traffic.varbinds += len(message.pdu.varbinds)
        return checked_varbinds(message.pdu, oids, self.target.address)

    def _encode(self, kind: PduKind, request_id: int, oids: Sequence[Oid], repetitions: int) -> bytes:
        questions = encode_questions(oids)
        secret = self._community.secret
        return encode_message_raw(self.target.version, secret, kind, request_id, 0, repetitions, questions)


def _blamed(oids: Sequence[Oid], error: MissingObject) -> Oid:
    if error.index:
        return oids[error.index - 1]
    if len(oids) == 1:
        return oids[0]
    raise error
