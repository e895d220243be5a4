"""The collector: opens a session with the OLT, reads what the node asks for, and reports failures as outcomes."""

from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial

from facho.polling.domain.collection import Collected, CollectRequest, Failure, RunControl
from facho.polling.domain.failure import FailureKind
from facho.polling.domain.task_type import QueryType
from facho.polling.vendors.definition import Definition
from facho.polling.vendors.index import Place
from facho.polling.vendors.loader import load_definitions
from facho.snmp_get.autofind import list_waiting
from facho.snmp_get.device import EXPECTED, Devices, failure_of
from facho.snmp_get.discovery import discover
from facho.snmp_get.free_oids import read_free_oids
from facho.snmp_get.olt_values import read_olt_values
from facho.snmp_get.one_onu import fetch_onu
from facho.snmp_get.onu_batches import fetch_onus
from facho.snmp_get.plan import CannotRead, Plan, plan_reading
from facho.snmp_get.reading import Part, Reader
from facho.snmp_get.tables import walk_tables

Step = Callable[[], Awaitable[Part]]
Steps = Callable[[Reader], Iterator[Step]]


@dataclass(frozen=True, slots=True)
class OltCollector:
    """Collects from any OLT whose vendor has a definition."""

    devices: Devices

    async def collect(self, request: CollectRequest, control: RunControl) -> Collected:
        """Read what is asked; what the device does wrong is a Failure in the answer."""
        definition = load_definitions().get(request.vendor)
        if definition is None:
            return _failed(FailureKind.MISSING, f"no vendor definition {request.vendor!r}")
        try:
            steps = _plan(definition, request)
            async with self.devices.open(request, definition, control) as reader:
                return await _read(reader, steps(reader))
        except CannotRead as error:
            return _failed(FailureKind.MISSING, str(error))
        except EXPECTED as error:
            return Collected(failure=failure_of(error))


def _plan(definition: Definition, request: CollectRequest) -> Steps:
    """Find out what is to be read before a session is opened; CannotRead when it means nothing here."""
    if request.onu is not None:
        place = Place(*request.onu)
        return lambda reader: iter([partial(fetch_onu, reader, place)])
    plan = plan_reading(definition, request)
    return lambda reader: _steps(reader, plan, request)


async def _read(reader: Reader, steps: Iterable[Step]) -> Collected:
    """Read part after part, until one of them fails or gives way."""
    parts: list[Part] = []
    for step in steps:
        parts.append(await step())
        if parts[-1].is_end:
            break
    return reader.collected(parts)


def _steps(reader: Reader, plan: Plan, request: CollectRequest) -> Iterator[Step]:
    """Choose how each thing is read: only ONUs are known beforehand, so only they can be asked for one by one."""
    if plan.identity:
        yield partial(discover, reader, plan.identity)
    elif plan.onus and request.query_type is QueryType.GET:
        yield partial(fetch_onus, reader, plan.onus, cursor=request.cursor)
    elif plan.onus:
        yield partial(walk_tables, reader, plan.onus)
    if plan.waiting:
        yield partial(list_waiting, reader, plan.waiting)
    if plan.olt:
        yield partial(read_olt_values, reader, plan.olt)
    if plan.oids:
        yield partial(read_free_oids, reader, plan.oids)


def _failed(kind: FailureKind, message: str) -> Collected:
    return Collected(failure=Failure(kind, message))
