"""What the demo needs in the database: its simulated OLTs with lively jobs, and a login."""

import json
import secrets
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import F

from facho.accounts.roles import Role, give_role
from facho.api.tokens import create_token
from facho.core.data_folder import DataFolder, write_private
from facho.hosts.models import Olt
from facho.infrastructure.secrets import Secret
from facho.snmp_jobs.models import SnmpJob, WorkflowNode
from facho.snmp_jobs.ready_made import apply_ready_made_jobs
from facho.snmp_jobs.store import NodeChange, change_nodes
from facho.traps.store import switch

USER = "admin"
# What the simulator calls its OLTs; a visitor's own are left alone.
SIMULATED_NAME = r"^olt-[0-9]{3}$"
# Far more often than a real OLT should be asked, so that a visitor sees life at once.
INTERVAL_SECONDS = 30


@dataclass(frozen=True, slots=True)
class DemoOlt:
    """A line that the simulator printed: name, host, port, vendor, community."""

    name: str
    host: str
    port: int
    vendor: str
    community: str

    @classmethod
    def parse(cls, line: str) -> "DemoOlt":
        """Read one line of the simulator's."""
        name, host, port, vendor, community = line.split()
        return cls(name, host, int(port), vendor, community)


@dataclass(frozen=True, slots=True)
class Access:
    """How to get in; kept in the demo's folder, so that it is the same at the next start."""

    user: str
    password: str
    token: str


@transaction.atomic
def save_olts(simulated: Sequence[DemoOlt], *, now: datetime) -> None:
    """Have exactly the simulated OLTs, at the ports they got this time, each due at once; others stay as they are."""
    ours = Olt.objects.filter(name__regex=SIMULATED_NAME)
    ours.exclude(name__in=[olt.name for olt in simulated]).delete()
    # Ports change hands between starts: parked rows cannot collide while they do.
    ours.update(address="0.0.0.0", port=F("id"))  # noqa: S104 no socket
    for line in simulated:
        olt, _is_new = Olt.objects.update_or_create(
            name=line.name,
            defaults={
                "host": line.host,
                "address": line.host,
                "port": line.port,
                "vendor": line.vendor,
                "community": Secret(line.community),
            },
        )
        if apply_ready_made_jobs(olt, now=now):
            nodes = WorkflowNode.objects.filter(workflow__olt=olt)
            SnmpJob.objects.filter(nodes__in=nodes).update(ignores_safe_interval=True)
            change_nodes(nodes, NodeChange(interval_seconds=INTERVAL_SECONDS), now=now)
    masters = WorkflowNode.objects.filter(is_chain_node=False, workflow__olt__name__in=[o.name for o in simulated])
    masters.update(run_requested_at=now)


def load_first_port() -> int | None:
    """Return the first port of the simulated OLTs at the last start, so that they can have it again."""
    ports = Olt.objects.filter(name__regex=SIMULATED_NAME).order_by("port").values_list("port", flat=True)
    return ports.first()


def provide_access(folder: DataFolder) -> Access:
    """Return the demo's login and token; made once, then read from the mark file."""
    if folder.demo_mark.exists():
        return Access(**json.loads(folder.demo_mark.read_text()))
    with transaction.atomic():
        User.objects.filter(username=USER).delete()
        password = secrets.token_urlsafe(9)
        user = User.objects.create_user(USER, password=password)
        give_role(user, Role.ADMIN)
        access = Access(USER, password, create_token(user))
    write_private(folder.demo_mark, json.dumps(asdict(access)))
    return access


def switch_traps_on() -> None:
    """Let the simulated OLTs be heard: the cut fibre of the demo appears within seconds."""
    switch(is_on=True)
