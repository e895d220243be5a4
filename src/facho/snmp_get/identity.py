"""Asks an OLT who it is, and what the vendor definitions make of the answer."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import cycle

from facho.hosts.store import has_identity, load_target
from facho.infrastructure.secrets import UndecryptableSecret
from facho.onus.store import has_onus
from facho.polling.domain import collection
from facho.polling.domain.execution_state import FailureKind, ProbeFinding
from facho.polling.domain.ports import DatabaseGateway
from facho.polling.snmp.ber import Oid, Value
from facho.polling.snmp.errors import AgentError, AgentTimeout, SnmpError
from facho.polling.snmp.network import Network
from facho.polling.snmp.oid import SYS_DESCR, SYS_NAME, SYS_OBJECT_ID, SYS_UP_TIME, format_oid
from facho.polling.snmp.session import Session
from facho.polling.snmp.target import Patience, Target
from facho.polling.snmp.transport import own_address
from facho.polling.vendors.column import Column
from facho.polling.vendors.decoders import clean_text
from facho.polling.vendors.definition import MAC, RUN_STATE, SERIAL, Definition, Refusal
from facho.polling.vendors.loader import load_definitions, recognise, recognise_by_tables, tables_to_ask
from facho.snmp_get.collector import PORT_COUNTS
from facho.snmp_get.diagnosis import explain_silence, find_cause
from facho.snmp_get.reading import count_traffic

# A person waits for the answer.
PATIENCE = Patience(timeout_s=2.0, tries=3)
# The PON ports of a card, so that the count of an empty one does not hide the others.
FIRST_ROWS = 8


@dataclass(frozen=True, slots=True)
class ProbeReport:
    """What a probe learned; `refusal` is the sentence for a device that is not an OLT we may poll."""

    answered: bool = False
    identity: collection.OltIdentity | None = None
    # None as well when only a repeated question was answered.
    round_trip_ms: float | None = None
    refusal: str = ""
    failure: collection.Failure | None = None
    # Why it failed, or what its view hides, and from which address we asked: kept with the execution.
    finding: ProbeFinding | None = None
    asked_from: str = ""
    # What asking took, without the further questions that look for the cause of silence.
    traffic: Mapping[str, int] = field(default_factory=dict)

    @property
    def summary(self) -> dict[str, int | str]:
        """The part that is stored."""
        texts = {"finding": self.finding.value if self.finding else "", "asked_from": self.asked_from}
        kept: dict[str, int | str] = {name: text for name, text in texts.items() if text}
        kept |= self.traffic
        return kept | ({} if self.round_trip_ms is None else {"round_trip_ms": round(self.round_trip_ms)})


@dataclass(slots=True)
class IdentityCollector:
    """A collector whose answer is also kept in `report`, for the person who asked."""

    network: Network
    database: DatabaseGateway
    report: ProbeReport = field(default_factory=ProbeReport)

    async def collect(self, request: collection.CollectRequest, control: collection.RunControl) -> collection.Collected:
        """Read the system group, sysUpTime included, with one GET."""
        try:
            self.report = await self._probe(request, control)
        except SnmpError as error:
            self.report = _failed(error, find_cause(error))
        except UndecryptableSecret as error:
            failure = collection.Failure(FailureKind.AUTH, str(error))
            self.report = ProbeReport(failure=failure, finding=ProbeFinding.BAD_CREDENTIAL)
        report = self.report
        rows = (collection.Rows(identity=report.identity),)
        return collection.Collected(report.summary, report.failure, was_heard=report.answered, rows=rows)

    async def _probe(self, request: collection.CollectRequest, permit: collection.SendPermit) -> ProbeReport:
        target, limits = await self.database.run(load_target, request, definition_in_flight=1)
        session = self.network.open(target, permit, limits)
        try:
            report = await _ask(session)
            if not await self.database.run(has_onus, request.olt_id):
                vendor = request.vendor or (report.identity.vendor if report.identity else "")
                report = replace(report, finding=await _look_for_onus(session, load_definitions().get(vendor)))
        except AgentTimeout as silence:
            was_heard = session.traffic.bytes_received > 0
            report = _failed(
                silence, ProbeFinding.IGNORES_USER if was_heard else await self._explain(request, target, permit)
            )
        except SnmpError as error:
            report = _failed(error, find_cause(error))
        finally:
            await session.close()
        return replace(report, asked_from=own_address(target), traffic=count_traffic(session))

    async def _explain(
        self, request: collection.CollectRequest, target: Target, permit: collection.SendPermit
    ) -> ProbeFinding:
        """Look closer at a silent OLT, unless it answered before: then it is down, and more questions do not help."""
        if await self.database.run(has_identity, request.olt_id):
            return ProbeFinding.SILENT
        return await explain_silence(self.network, target, permit)


async def _ask(session: Session) -> ProbeReport:
    varbinds = await session.get([SYS_NAME, SYS_DESCR, SYS_OBJECT_ID, SYS_UP_TIME], patience=PATIENCE)
    seconds = session.round_trips.mean_seconds
    name, descr, object_id = (value for _, _, value in varbinds[:3])
    answering = await _find_rows(session, tables_to_ask(object_id if isinstance(object_id, tuple) else ()))
    report = identify(name, descr, object_id, answering)
    return replace(report, round_trip_ms=None if seconds is None else seconds * 1000)


async def _look_for_onus(session: Session, definition: Definition | None) -> ProbeFinding | None:
    """Read the beginning of the columns that show ONUs; None if nothing is hidden, or nothing tells."""
    if definition is None or not definition.has_column(RUN_STATE):
        return None
    serials = {key for key in definition.columns if key in (SERIAL, MAC) or definition.fills(key) in (SERIAL, MAC)}
    counts = [key for keys in PORT_COUNTS for key in keys if definition.has_column(key)][:1]
    wanted = [definition.column(key) for key in (*serials, RUN_STATE, *counts)]
    try:
        shown = await _first_values(session, wanted, definition.polling.max_varbinds)
    except (AgentError, AgentTimeout):
        return None
    if not serials or any(shown[key] for key in serials):
        return None
    if shown[RUN_STATE]:
        return ProbeFinding.SERIALS_HIDDEN
    return ProbeFinding.ONUS_HIDDEN if any(value for key in counts for value in shown[key]) else None


async def _first_values(session: Session, columns: Sequence[Column], width: int) -> dict[str, list[object]]:
    """Read the first values of columns, so many side by side."""
    shown: dict[str, list[object]] = {column.key: [] for column in columns}
    for start in range(0, len(columns), width):
        together = columns[start : start + width]
        page = await session.next_page([column.oid for column in together], FIRST_ROWS, patience=PATIENCE)
        for column, (oid, tag, raw) in zip(cycle(together), page, strict=False):
            if oid[: len(column.oid)] == column.oid != oid:
                shown[column.key].append(column.decode(tag, raw).value)
    return shown


async def _find_rows(session: Session, tables: Sequence[Oid]) -> list[Oid]:
    """Return which of the tables have rows, with one GETNEXT; a device that cannot answer it shows none."""
    if not tables:
        return []
    try:
        page = await session.next_page(tables, 1, patience=PATIENCE)
    except (AgentError, AgentTimeout):
        return []
    return [table for table, (oid, _, _) in zip(tables, page, strict=False) if oid[: len(table)] == table != oid]


def identify(sys_name: Value, sys_descr: Value, sys_object_id: Value, answering: Collection[Oid] = ()) -> ProbeReport:
    """Recognise a device by its system group and the tables that have rows; values of a wrong type count as empty."""
    name, descr = _text(sys_name), _text(sys_descr)
    object_id = sys_object_id if isinstance(sys_object_id, tuple) else ()
    verdict = recognise_by_tables(recognise(object_id, descr), object_id, answering)
    identity = collection.OltIdentity(name, descr, format_oid(object_id), vendor="", brand="", model="")
    if isinstance(verdict, Refusal):
        return ProbeReport(answered=True, identity=identity, refusal=verdict.sentence)
    if isinstance(verdict, Definition):
        model = verdict.model_name(object_id, descr) or ""
        identity = replace(identity, vendor=verdict.key, brand=verdict.brand, model=model)
    return ProbeReport(answered=True, identity=identity)


def _failed(error: SnmpError, finding: ProbeFinding) -> ProbeReport:
    return ProbeReport(failure=collection.Failure(error.kind, str(error)), finding=finding)


def _text(value: Value) -> str:
    return clean_text(value) if isinstance(value, bytes) else ""
