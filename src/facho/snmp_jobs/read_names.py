"""What is read, by name: OIDs as columns of a definition or as an operator called them, and jobs by task type."""

from collections.abc import Iterable
from typing import NamedTuple

from facho.polling.snmp.oid import format_oid
from facho.polling.vendors.loader import load_definitions
from facho.snmp_jobs.models import SnmpJob, SnmpJobOid


class NamedRead(NamedTuple):
    """An OID, what it is called, and the unit of its raw values where somebody gave one."""

    oid: str
    name: str
    unit: str


NAMELESS = NamedRead("", "", "")


def load_named_reads(vendor: str) -> list[NamedRead]:
    """Return the operator's own OIDs and the columns of a vendor; raw values of a column have no known unit."""
    own = SnmpJobOid.objects.exclude(oid="").order_by("id").values_list("oid", "name", "unit")
    definition = load_definitions().get(vendor)
    columns = definition.columns.values() if definition else ()
    return [
        *(NamedRead(oid.removeprefix("."), name, unit) for oid, name, unit in own),
        *(NamedRead(format_oid(column.oid), column.key, "") for column in columns if not column.shares),
    ]


def load_kept_reads() -> frozenset[str]:
    """Return the columns and OIDs of which somebody wants the history, whichever job reads them."""
    kept = SnmpJobOid.objects.filter(keeps_history=True).order_by().values_list("column_key", "oid")
    return frozenset(key or oid.removeprefix(".") for key, oid in kept)


def load_job_names(olt_id: int | None = None) -> dict[str, str]:
    """Load what people call the jobs, or those of one OLT, by task type; of several the oldest names it; one query."""
    jobs = SnmpJob.objects.order_by("-id").only("name", "slug", "query_type")
    if olt_id is not None:
        jobs = jobs.filter(nodes__workflow__olt_id=olt_id)
    return {job.task_type: job.name for job in jobs}


def name_read(oid: str, reads: Iterable[NamedRead]) -> NamedRead:
    """Find the read that an OID comes from: the same, or the closest one above it."""
    above = [read for read in reads if oid == read.oid or oid.startswith(f"{read.oid}.")]
    return max(above, key=lambda read: len(read.oid), default=NAMELESS)
