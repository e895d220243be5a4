"""Asks an OLT who it is, and what the vendor definitions make of the answer."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from facho.hosts.secrets import UndecryptableSecret
from facho.hosts.store import Identity, has_identity, load_target, save_identity
from facho.polling.domain.collection import Collected, CollectRequest, Failure, RunControl, SendPermit
from facho.polling.domain.failure import FailureKind
from facho.polling.domain.gateway import DatabaseGateway
from facho.polling.domain.probe_finding import Finding
from facho.polling.snmp.ber import Value
from facho.polling.snmp.errors import AgentTimeout, SnmpError
from facho.polling.snmp.network import Network
from facho.polling.snmp.oid import SYS_DESCR, SYS_NAME, SYS_OBJECT_ID, SYS_UP_TIME, format_oid
from facho.polling.snmp.own_address import own_address
from facho.polling.snmp.session import Session
from facho.polling.snmp.target import Patience, Target
from facho.polling.vendors.decoders import clean_text
from facho.polling.vendors.definition import Definition, Refusal
from facho.polling.vendors.recognition import recognise
from facho.snmp_get.diagnosis import explain_silence, find_cause
from facho.snmp_get.reading import count_traffic

# A person waits for the answer.
PATIENCE = Patience(timeout_s=2.0, tries=3)


@dataclass(frozen=True, slots=True)
class ProbeReport:
    """What a probe learned; `refusal` is the sentence for a device that is not an OLT we may poll."""

    answered: bool = False
    identity: Identity | None = None
    # None as well when only a repeated question was answered.
    round_trip_ms: float | None = None
    refusal: str = ""
    failure: Failure | None = None
    # Why it failed, as far as can be told, and from which address we asked: kept with the execution.
    finding: Finding | None = None
    asked_from: str = ""
    # What asking took, without the further questions that look for the cause of silence.
    traffic: Mapping[str, int] = field(default_factory=dict)

    @property
    def summary(self) -> dict[str, int | str]:
        """What is kept of it for whoever looks later."""
        told = {"finding": self.finding.value if self.finding else "", "asked_from": self.asked_from}
        kept: dict[str, int | str] = {name: text for name, text in told.items() if text}
        kept |= self.traffic
        return kept | ({} if self.round_trip_ms is None else {"round_trip_ms": round(self.round_trip_ms)})


@dataclass(slots=True)
class IdentityCollector:
    """A collector whose answer is also kept in `report`, for the person who asked."""

    network: Network
    database: DatabaseGateway
    report: ProbeReport = field(default_factory=ProbeReport)

    async def collect(self, request: CollectRequest, control: RunControl) -> Collected:
        """Read the system group, sysUpTime included, with one GET."""
        try:
            self.report = await self._probe(request, control)
        except SnmpError as error:
            self.report = _failed(error, find_cause(error))
        except UndecryptableSecret as error:
            failure = Failure(FailureKind.AUTH, str(error))
            self.report = ProbeReport(failure=failure, finding=Finding.BAD_CREDENTIAL)
        identity = self.report.identity

        def save(now: datetime) -> None:
            if identity is not None:
                save_identity(request.olt_id, identity, now=now)

        return Collected(self.report.summary, self.report.failure, was_heard=self.report.answered, save=save)

    async def _probe(self, request: CollectRequest, permit: SendPermit) -> ProbeReport:
        target, limits = await self.database.run(load_target, request, definition_in_flight=1)
        session = self.network.open(target, permit, limits)
        try:
            report = await _ask(session)
        except AgentTimeout as silence:
            was_heard = session.traffic.bytes_received > 0
            report = _failed(
                silence, Finding.IGNORES_USER if was_heard else await self._explain(request, target, permit)
            )
        except SnmpError as error:
            report = _failed(error, find_cause(error))
        finally:
            await session.close()
        return replace(report, asked_from=own_address(target), traffic=count_traffic(session))

    async def _explain(self, request: CollectRequest, target: Target, permit: SendPermit) -> Finding:
        """Look closer at a silent OLT, unless it answered before: then it is away, and more questions tell nothing."""
        if await self.database.run(has_identity, request.olt_id):
            return Finding.SILENT
        return await explain_silence(self.network, target, permit)


async def _ask(session: Session) -> ProbeReport:
    varbinds = await session.get([SYS_NAME, SYS_DESCR, SYS_OBJECT_ID, SYS_UP_TIME], patience=PATIENCE)
    seconds = session.round_trips.mean_seconds
    report = identify(*(value for _, _, value in varbinds[:3]))
    return replace(report, round_trip_ms=None if seconds is None else seconds * 1000)


def identify(sys_name: Value, sys_descr: Value, sys_object_id: Value) -> ProbeReport:
    """Recognise a device by its system group; values of a wrong type count as empty."""
    name, descr = _text(sys_name), _text(sys_descr)
    object_id = sys_object_id if isinstance(sys_object_id, tuple) else ()
    verdict = recognise(object_id, descr)
    identity = Identity(name, descr, format_oid(object_id), vendor="", brand="", model="")
    if isinstance(verdict, Refusal):
        return ProbeReport(answered=True, identity=identity, refusal=verdict.sentence)
    if isinstance(verdict, Definition):
        model = verdict.model_name(object_id, descr) or ""
        identity = replace(identity, vendor=verdict.key, brand=verdict.brand, model=model)
    return ProbeReport(answered=True, identity=identity)


def _failed(error: SnmpError, finding: Finding) -> ProbeReport:
    return ProbeReport(failure=Failure(error.kind, str(error)), finding=finding)


def _text(value: Value) -> str:
    return clean_text(value) if isinstance(value, bytes) else ""
