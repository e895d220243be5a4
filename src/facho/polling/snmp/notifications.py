"""Traps and informs of SNMP v1, v2c and v3: which of them count, and what is sent back.

No socket and no database: `NotificationEar.hear` takes a datagram and returns what it says with the reply to send. It
never raises for what a stranger sends. A reply is about as large as the datagram that asked for it.
"""

import hmac
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from socket import AF_INET, inet_ntop, inet_pton
from typing import NamedTuple, TypeVar

from facho.polling.snmp import pages
from facho.polling.snmp.ber import Oid, PduKind, Tag, VarBind, decode_pdu, encode_varbinds
from facho.polling.snmp.ber_values import (
    MAX_SUB_IDS,
    SEQUENCE,
    decode_oid,
    decode_value,
    encode_integer,
    encode_oid,
    encode_value,
    enter,
    read_integer,
    wrap,
)
from facho.polling.snmp.errors import MalformedMessage
from facho.polling.snmp.oid import (
    GENERIC_TRAPS,
    SNMP_TRAP_ADDRESS,
    SNMP_TRAP_COMMUNITY,
    SNMP_TRAP_ENTERPRISE,
    SNMP_TRAP_OID,
    SYS_UP_TIME,
    USM_STATS,
)
from facho.polling.snmp.target import Community, Credential, SnmpVersion, UserCredential
from facho.polling.snmp.user_security import (
    Envelope,
    ScopedPdu,
    SnmpEngine,
    UserKeys,
    decode_envelope,
    derive_keys,
    encode_scoped,
    is_signed,
    localize_keys,
    make_engine,
    read_scoped,
    seal_envelope,
)

# What UDP over IPv4 can carry.
MAX_NOTIFICATION_BYTES = 65_507
_V1_TRAP = 0xA4
_ENTERPRISE_SPECIFIC = 6
_NO_ADDRESS = bytes(4)
_NO_ERROR = encode_integer(0) * 2
# Varbinds about the notification itself.
_HEADERS = frozenset((SYS_UP_TIME, SNMP_TRAP_OID, SNMP_TRAP_ADDRESS, SNMP_TRAP_COMMUNITY, SNMP_TRAP_ENTERPRISE))

# RFC 3414: how late a message of v3 may come, and the count of boots at which an engine is worn out.
TIME_WINDOW_SECONDS = 150
_LAST_BOOTS = 0x7FFF_FFFF
# Allowed clock drift of an engine, so that a slow one is not rejected after weeks without a message.
_DRIFT = 0.001
# Only authenticated senders fill these; a storm pushes the oldest out.
_MAX_CLOCKS = 16_384
_MAX_DIGESTS = 16_384
# Making keys takes 1 to 4 ms: this many a second are at most a tenth of a core. OLTs usually share one user.
_MAX_KEYS = 16_384
_KEYS_PER_SECOND = 20.0
_KEYS_AT_ONCE = 100.0


class Refused(StrEnum):
    """Why a datagram does not count."""

    MALFORMED = "malformed"
    # The credentials of the sender are for another version.
    VERSION = "version"
    COMMUNITY = "community"
    # An unknown user or engine, or one whose keys cannot be made yet because too many were asked for.
    USER = "user"
    # Less protected than the credential.
    LEVEL = "level"
    # A wrong digest, or content that cannot be decrypted.
    SIGNATURE = "signature"
    # Outside the time window, or heard before.
    TIME = "time"


@dataclass(frozen=True, slots=True)
class Notification:
    """What a sender said; `varbinds` leave out those about the notification itself."""

    version: SnmpVersion
    # snmpTrapOID.0; that of a v1 trap is made by RFC 3584.
    oid: Oid
    varbinds: tuple[VarBind, ...] = ()
    uptime_ticks: int = 0
    is_inform: bool = False
    # agent-addr of v1 or snmpTrapAddress.0; "" when there is none.
    agent_address: str = ""
    # v3 only: the engine of the sender, b"" when it is not named.
    engine_id: bytes = b""
    # What some agents append to their community after "@": number, level and time of the event.
    tail: bytes = b""


@dataclass(frozen=True, slots=True)
class Hearing:
    """The outcome of a datagram. A question for our engine id has a reply only: it neither counts nor is refused."""

    notification: Notification | None = None
    refused: Refused | None = None
    reply: bytes | None = None


class NotificationEar:
    """Knows our own SNMP engine, to which informs of v3 are addressed, and the clocks of the engines that send.

    `engine_boots` must be larger than in every earlier run with the same `engine_id`.
    """

    def __init__(self, *, engine_id: bytes, engine_boots: int, monotonic: Callable[[], float]) -> None:
        if not 5 <= len(engine_id) <= 32 or not 0 <= engine_boots < _LAST_BOOTS:
            raise ValueError("an SNMP engine has an id of 5 to 32 bytes and counts its boots in 31 bits")
        self.engine_id = engine_id
        self._boots = engine_boots
        self._monotonic = monotonic
        self._started = monotonic()
        self._keys = _KeyRing(monotonic)
        self._clocks: dict[bytes, _EngineClock] = {}
        self._digests: dict[bytes, None] = {}
        self._reported: Counter[int] = Counter()

    @property
    def engines(self) -> dict[bytes, tuple[int, int]]:
        """Boots and time of engines as last heard in an authenticated trap; give them to `learn` after a start."""
        return {engine_id: (clock.boots, clock.seconds) for engine_id, clock in self._clocks.items()}

    def learn(self, engine_id: bytes, boots: int, seconds: int) -> None:
        """Set the clock of an engine, from an earlier run or from an authenticated answer of it."""
        self._clocks.pop(engine_id, None)
        _keep(self._clocks, engine_id, _EngineClock(boots, seconds, self._monotonic()), _MAX_CLOCKS)

    def hear(self, data: bytes, credentials: Sequence[Credential]) -> Hearing:
        """Judge a datagram by the credentials of the OLTs at its source address; without any there is no reply."""
        if len(data) > MAX_NOTIFICATION_BYTES:
            return _refused(Refused.MALFORMED)
        try:
            pos, end = enter(data, 0, len(data), SEQUENCE)
            if end != len(data):
                return _refused(Refused.MALFORMED)
            version, pos = read_integer(data, pos, end)
            if version == SnmpVersion.V3:
                return self._hear_user(decode_envelope(data), credentials)
            if version in (SnmpVersion.V1, SnmpVersion.V2C):
                return _hear_community(data, pos, SnmpVersion(version), credentials)
        except (MalformedMessage, IndexError):
            pass
        return _refused(Refused.MALFORMED)

    def _hear_user(self, envelope: Envelope, credentials: Sequence[Credential]) -> Hearing:
        users = [credential for credential in credentials if isinstance(credential, UserCredential)]
        if not users:
            return _refused(Refused.VERSION if credentials else Refused.USER)
        if not envelope.engine_id:
            if not envelope.is_reportable:
                return _refused(Refused.USER)
            return Hearing(reply=self._report(envelope, _Statistic.UNKNOWN_ENGINE, _ANYBODY))
        verdict = _UNKNOWN_USER
        for user in users:
            if user.user.encode() == envelope.user:
                opened = self._open(envelope, user)
                if isinstance(opened, ScopedPdu):
                    return self._take(envelope, user, opened)
                verdict = opened
                if verdict is _LATE:
                    break
        return self._refuse(envelope, verdict, user)

    def _open(self, envelope: Envelope, user: UserCredential) -> "ScopedPdu | _Verdict":
        """Verify and decrypt a message; its digest and its time come first."""
        level = (user.auth_protocol is not None, user.priv_protocol is not None)
        if (envelope.is_authenticated, envelope.is_encrypted) != level:
            return _OTHER_LEVEL if (envelope.is_authenticated, envelope.is_encrypted) > level else _LOW_LEVEL
        engine = self._keys.localized(user, envelope.engine_id)
        if engine is None:
            return _NO_KEYS
        if envelope.is_authenticated:
            if not is_signed(envelope, user, engine):
                return _WRONG_DIGEST
            if not self._is_timely(envelope):
                return _LATE
        try:
            return read_scoped(envelope, user, engine)
        except MalformedMessage:
            if envelope.is_encrypted:
                return _UNREADABLE
            raise

    def _take(self, envelope: Envelope, user: UserCredential, scoped: ScopedPdu) -> Hearing:
        """Accept what is proven to come from the user: a trap of its own engine, or an inform to ours."""
        is_inform = scoped.pdu.kind is PduKind.INFORM
        if not is_inform and scoped.pdu.kind is not PduKind.TRAP:
            raise MalformedMessage("neither a trap nor an inform")
        if is_inform != (envelope.engine_id == self.engine_id):
            return self._refuse(envelope, _UNKNOWN_ENGINE, user)
        sender = scoped.context_engine_id if is_inform else envelope.engine_id
        notification = _read_varbinds(
            scoped.pdu.varbinds,
            SnmpVersion.V3,
            is_inform=is_inform,
            engine_id=b"" if sender == self.engine_id else sender,
        )
        reply = self._response(envelope, user, scoped) if is_inform else None
        if envelope.is_authenticated:
            if not is_inform:
                self._advance(envelope)
            digest = envelope.engine_id + envelope.digest
            if digest in self._digests:
                # The answer to an inform may have been lost, so it is sent again.
                return Hearing(refused=Refused.TIME, reply=reply)
            _keep(self._digests, digest, None, _MAX_DIGESTS)
        return Hearing(notification, reply=reply)

    def _is_timely(self, envelope: Envelope) -> bool:
        if envelope.engine_id == self.engine_id:
            return (
                envelope.engine_boots == self._boots and abs(envelope.engine_time - self._time()) <= TIME_WINDOW_SECONDS
            )
        clock = self._clocks.get(envelope.engine_id)
        if envelope.engine_boots == _LAST_BOOTS:
            return False
        if clock is None or envelope.engine_boots != clock.boots:
            return clock is None or envelope.engine_boots > clock.boots
        passed = self._monotonic() - clock.heard_at
        return envelope.engine_time >= clock.seconds + passed * (1 - _DRIFT) - TIME_WINDOW_SECONDS

    def _advance(self, envelope: Envelope) -> None:
        clock = self._clocks.get(envelope.engine_id)
        if clock is None or (envelope.engine_boots, envelope.engine_time) > (clock.boots, clock.seconds):
            self.learn(envelope.engine_id, envelope.engine_boots, envelope.engine_time)

    def _time(self) -> int:
        return int(self._monotonic() - self._started)

    def _response(self, envelope: Envelope, user: UserCredential, scoped: ScopedPdu) -> bytes | None:
        pdu = _encode_response(scoped.data, scoped.pdu_at, scoped.end)
        body = encode_scoped(scoped.context_engine_id, scoped.context_name, pdu)
        return self._seal(envelope, user, body, is_encrypted=envelope.is_encrypted)

    def _refuse(self, envelope: Envelope, verdict: "_Verdict", user: UserCredential) -> Hearing:
        """Refuse, with the report by which a sender that wants one finds our engine, our clock or its mistake."""
        if not envelope.is_reportable or verdict.statistic is None:
            return _refused(verdict.refused)
        statistic = verdict.statistic if envelope.engine_id == self.engine_id else _Statistic.UNKNOWN_ENGINE
        # Only the report about our clock is signed: it follows a digest that was right.
        reporter = user if statistic is _Statistic.LATE else _ANYBODY
        return Hearing(refused=verdict.refused, reply=self._report(envelope, statistic, reporter))

    def _report(self, envelope: Envelope, statistic: "_Statistic", user: UserCredential) -> bytes | None:
        self._reported[statistic] += 1
        count = self._reported[statistic] & 0xFFFF_FFFF
        varbinds = wrap(SEQUENCE, encode_varbinds([((*USM_STATS, statistic, 0), Tag.COUNTER32, count)]))
        pdu = wrap(PduKind.REPORT, encode_integer(_request_id(envelope)) + _NO_ERROR + varbinds)
        return self._seal(envelope, user, encode_scoped(self.engine_id, b"", pdu))

    def _seal(
        self, envelope: Envelope, user: UserCredential, body: bytes, *, is_encrypted: bool = False
    ) -> bytes | None:
        engine = self._keys.localized(user, self.engine_id)
        if engine is None:
            return None
        answer = Envelope(
            message_id=envelope.message_id,
            is_authenticated=user.auth_protocol is not None,
            is_encrypted=is_encrypted,
            engine_id=self.engine_id,
            engine_boots=self._boots,
            engine_time=self._time(),
            user=envelope.user,
            body=body,
        )
        return seal_envelope(answer, user, engine)


# Signs and encrypts nothing.
_ANYBODY = UserCredential("anybody")


class _Statistic(IntEnum):
    """Counters below usmStats by which a report says why a message was not taken."""

    UNSUPPORTED_LEVEL = 1
    LATE = 2
    UNKNOWN_USER = 3
    UNKNOWN_ENGINE = 4
    WRONG_DIGEST = 5
    UNREADABLE = 6


class _Verdict(NamedTuple):
    refused: Refused
    # None: no report, so the sender tries again.
    statistic: _Statistic | None


_UNKNOWN_USER = _Verdict(Refused.USER, _Statistic.UNKNOWN_USER)
_UNKNOWN_ENGINE = _Verdict(Refused.USER, _Statistic.UNKNOWN_ENGINE)
_NO_KEYS = _Verdict(Refused.USER, None)
_LOW_LEVEL = _Verdict(Refused.LEVEL, _Statistic.UNSUPPORTED_LEVEL)
# Better protected than the credential, so there is no key to open it with.
_OTHER_LEVEL = _Verdict(Refused.SIGNATURE, _Statistic.UNSUPPORTED_LEVEL)
_WRONG_DIGEST = _Verdict(Refused.SIGNATURE, _Statistic.WRONG_DIGEST)
_UNREADABLE = _Verdict(Refused.SIGNATURE, _Statistic.UNREADABLE)
_LATE = _Verdict(Refused.TIME, _Statistic.LATE)


class _EngineClock(NamedTuple):
    boots: int
    seconds: int
    heard_at: float


class _KeyRing:
    """Keys of users, made once each and at a bounded rate.

    Only the passphrases cost time; keys for one engine follow in a microsecond. So invented engine ids are cheap, and
    a sender can make us hash only the credentials at its address, once.
    """

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._kept: dict[UserCredential, UserKeys] = {}
        self._allowed = _KEYS_AT_ONCE
        self._counted_at = monotonic()

    def localized(self, user: UserCredential, engine_id: bytes) -> SnmpEngine | None:
        """Return the user's keys for an engine; None if too many keys were made in the last seconds."""
        keys = self._kept.pop(user, None)
        if keys is None:
            now = self._monotonic()
            self._allowed = min(_KEYS_AT_ONCE, self._allowed + (now - self._counted_at) * _KEYS_PER_SECOND)
            self._counted_at = now
            if user.auth_protocol is not None:
                if self._allowed < 1:
                    return None
                self._allowed -= 1
            keys = derive_keys(user)
        # Back to the end: the first is the one that was not used for longest.
        _keep(self._kept, user, keys, _MAX_KEYS)
        return localize_keys(user, keys, engine_id)


_Key = TypeVar("_Key")
_Kept = TypeVar("_Kept")


def _keep(kept: dict[_Key, _Kept], key: _Key, value: _Kept, limit: int) -> None:
    kept[key] = value
    if len(kept) > limit:
        del kept[next(iter(kept))]


def _refused(reason: Refused) -> Hearing:
    return _REFUSALS[reason]


_REFUSALS = {reason: Hearing(refused=reason) for reason in Refused}


def _hear_community(data: bytes, pos: int, version: SnmpVersion, credentials: Sequence[Credential]) -> Hearing:
    end = len(data)
    start, pdu_at = enter(data, pos, end, Tag.OCTET_STRING)
    tail = _community_tail(data[start:pdu_at], credentials)
    if tail is None:
        is_for_users = credentials and not any(isinstance(credential, Community) for credential in credentials)
        return _refused(Refused.VERSION if is_for_users else Refused.COMMUNITY)
    if version is SnmpVersion.V1:
        return Hearing(_read_v1_trap(data, pdu_at, tail))
    pdu = decode_pdu(data, pdu_at, end)
    is_inform = pdu.kind is PduKind.INFORM
    if not is_inform and pdu.kind is not PduKind.TRAP:
        raise MalformedMessage("neither a trap nor an inform")
    notification = _read_varbinds(pdu.varbinds, version, is_inform=is_inform, tail=tail)
    if not is_inform:
        return Hearing(notification)
    head = encode_integer(version) + wrap(Tag.OCTET_STRING, data[start:pdu_at])
    return Hearing(notification, reply=wrap(SEQUENCE, head + _encode_response(data, pdu_at, end)))


def _community_tail(community: bytes, credentials: Sequence[Credential]) -> bytes | None:
    """Return what follows the community of a credential and "@", b"" if nothing does; None if no credential fits."""
    for credential in credentials:
        if isinstance(credential, Community):
            secret = credential.secret
            if hmac.compare_digest(community, secret):
                return b""
            if hmac.compare_digest(community[: len(secret) + 1], secret + b"@"):
                return community[len(secret) + 1 :]
    return None


def _read_v1_trap(data: bytes, pos: int, tail: bytes) -> Notification:
    pos, end = enter(data, pos, len(data), _V1_TRAP)
    start, pos = enter(data, pos, end, Tag.OBJECT_IDENTIFIER)
    enterprise = decode_oid(data[start:pos])
    start, pos = enter(data, pos, end, Tag.IP_ADDRESS)
    address = data[start:pos]
    generic, pos = read_integer(data, pos, end)
    specific, pos = read_integer(data, pos, end)
    start, pos = enter(data, pos, end, Tag.TIMETICKS)
    ticks = decode_value(Tag.TIMETICKS, data[start:pos])
    start, list_end = enter(data, pos, end, SEQUENCE)
    if list_end != len(data) or end != list_end or len(address) != len(_NO_ADDRESS) or not isinstance(ticks, int):
        raise MalformedMessage("not the trap of v1")
    oid = _trap_oid(enterprise, generic, specific)
    # An address of zeros names nobody.
    agent_address = inet_ntop(AF_INET, address) if address != _NO_ADDRESS else ""
    rest = _gather(pages.decoder.VarBindPage(data, start, end))
    return Notification(SnmpVersion.V1, oid, rest.varbinds, ticks, False, agent_address or rest.address, b"", tail)


def _trap_oid(enterprise: Oid, generic: int, specific: int) -> Oid:
    if 0 <= generic < _ENTERPRISE_SPECIFIC:
        return (*GENERIC_TRAPS, generic + 1)
    if generic != _ENTERPRISE_SPECIFIC or specific < 0 or len(enterprise) > MAX_SUB_IDS - 2:
        raise MalformedMessage("not a kind of trap")
    return (*enterprise, 0, specific)


def _read_varbinds(
    varbinds: Sequence[VarBind],
    version: SnmpVersion,
    *,
    is_inform: bool,
    engine_id: bytes = b"",
    tail: bytes = b"",
) -> Notification:
    found = _gather(varbinds)
    if not found.oid:
        raise MalformedMessage("a notification without its OID")
    return Notification(version, found.oid, found.varbinds, found.ticks, is_inform, found.address, engine_id, tail)


class _Gathered(NamedTuple):
    oid: Oid
    ticks: int
    address: str
    varbinds: tuple[VarBind, ...]


def _gather(page: Sequence[VarBind]) -> _Gathered:
    """Part the varbinds about the notification from its own; the former may be anywhere."""
    oid: Oid = ()
    ticks = 0
    address = ""
    own = []
    for varbind in page:
        name, tag, value = varbind
        if name not in _HEADERS:
            own.append(varbind)
        elif name == SNMP_TRAP_OID and isinstance(value, tuple):
            oid = oid or value
        elif name == SYS_UP_TIME and tag == Tag.TIMETICKS and isinstance(value, int):
            ticks = value
        elif name == SNMP_TRAP_ADDRESS and tag == Tag.IP_ADDRESS and isinstance(value, bytes) and value != _NO_ADDRESS:
            address = inet_ntop(AF_INET, value)
    return _Gathered(oid, ticks, address, tuple(own))


def _request_id(envelope: Envelope) -> int:
    """Return the request id of a message that is not encrypted; 0 if it cannot be read."""
    if envelope.is_encrypted:
        return 0
    try:
        return read_scoped(envelope, _ANYBODY, SnmpEngine(b"")).pdu.request_id
    except MalformedMessage:
        return 0


def _encode_response(data: bytes, pos: int, end: int) -> bytes:
    """Encode the answer to the inform in `data` from `pos`: its request id, no error, and its varbinds as they came."""
    pos, _ = enter(data, pos, end, PduKind.INFORM)
    request_id, pos = read_integer(data, pos, end)
    _, pos = read_integer(data, pos, end)
    _, pos = read_integer(data, pos, end)
    return wrap(PduKind.RESPONSE, encode_integer(request_id) + _NO_ERROR + data[pos:end])


def encode_notification(
    notification: Notification,
    credential: Credential,
    *,
    request_id: int = 1,
    clock: tuple[int, int] = (1, 0),
    receiver_id: bytes = b"",
) -> bytes:
    """Encode a notification as its sender would; ValueError if it does not fit its version.

    `clock` (boots, time) and `receiver_id`, the engine an inform is addressed to, are for v3 only. RFC 3584 makes a v1
    trap of an OID without a 0 before its last number too; it is heard with one.
    """
    if isinstance(credential, UserCredential) != (notification.version is SnmpVersion.V3):
        raise ValueError("v3 is spoken as a user, v1 and v2c with a community")
    if isinstance(credential, UserCredential):
        return _encode_for_user(notification, credential, request_id, clock, receiver_id)
    community = credential.secret + (b"@" + notification.tail if notification.tail else b"")
    pdu = (
        _encode_v1_trap(notification)
        if notification.version is SnmpVersion.V1
        else _encode_pdu(notification, request_id)
    )
    return wrap(SEQUENCE, encode_integer(notification.version) + wrap(Tag.OCTET_STRING, community) + pdu)


def _encode_v1_trap(notification: Notification) -> bytes:
    oid = notification.oid
    if notification.is_inform or any(tag == Tag.COUNTER64 for _, tag, _ in notification.varbinds):
        raise ValueError("v1 has neither informs nor 64-bit counters")
    generic, specific = _ENTERPRISE_SPECIFIC, oid[-1]
    enterprise = oid[:-2] if oid[-2] == 0 else oid[:-1]
    if oid[:-1] == GENERIC_TRAPS and 1 <= oid[-1] <= _ENTERPRISE_SPECIFIC:
        enterprise, generic, specific = GENERIC_TRAPS, oid[-1] - 1, 0
    fields = wrap(Tag.OBJECT_IDENTIFIER, encode_oid(enterprise))
    fields += encode_value(Tag.IP_ADDRESS, inet_pton(AF_INET, notification.agent_address or "0.0.0.0"))  # noqa: S104
    fields += encode_integer(generic) + encode_integer(specific)
    fields += encode_value(Tag.TIMETICKS, notification.uptime_ticks)
    return wrap(_V1_TRAP, fields + wrap(SEQUENCE, encode_varbinds(notification.varbinds)))


def _encode_pdu(notification: Notification, request_id: int) -> bytes:
    varbinds: list[VarBind] = [
        (SYS_UP_TIME, Tag.TIMETICKS, notification.uptime_ticks),
        (SNMP_TRAP_OID, Tag.OBJECT_IDENTIFIER, notification.oid),
        *notification.varbinds,
    ]
    if notification.agent_address:
        varbinds.append((SNMP_TRAP_ADDRESS, Tag.IP_ADDRESS, inet_pton(AF_INET, notification.agent_address)))
    kind = PduKind.INFORM if notification.is_inform else PduKind.TRAP
    return wrap(kind, encode_integer(request_id) + _NO_ERROR + wrap(SEQUENCE, encode_varbinds(varbinds)))


def _encode_for_user(
    notification: Notification, user: UserCredential, request_id: int, clock: tuple[int, int], receiver_id: bytes
) -> bytes:
    engine_id = receiver_id if notification.is_inform else notification.engine_id
    envelope = Envelope(
        message_id=request_id,
        is_authenticated=user.auth_protocol is not None,
        is_encrypted=user.priv_protocol is not None,
        engine_id=engine_id,
        engine_boots=clock[0],
        engine_time=clock[1],
        user=user.user.encode(),
        is_reportable=notification.is_inform,
        body=encode_scoped(notification.engine_id or engine_id, b"", _encode_pdu(notification, request_id)),
    )
    return seal_envelope(envelope, user, make_engine(user, engine_id))
