"""Every fault in one run, under load, on real servers: no overlap, nothing lost, nothing doubled, soon back."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from distributed.storm import LEASE_SECONDS, PACKET_SECONDS

pytestmark = [pytest.mark.slow, pytest.mark.postgresql, pytest.mark.thorough]

TESTS = Path(__file__).parents[1]
OLTS = 100


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that the user who runs PostgreSQL may enter."""
    with tempfile.TemporaryDirectory(prefix="facho-storm-") as name:
        Path(name).chmod(0o711)
        yield Path(name)


def test_faults_of_every_kind_cost_time_and_nothing_else(folder: Path) -> None:
    """Leader and workers killed and stopped, Redis emptied and restarted, PostgreSQL too, beat and messages twice."""
    path = os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")])
    environ = {**os.environ, "FACHO_DATA_DIR": str(folder / "data"), "PYTHONPATH": path}
    order = json.dumps({"folder": str(folder), "olts": OLTS})

    command = [sys.executable, "-m", "distributed.storm"]
    played = subprocess.run(command, env=environ, input=order, stdout=subprocess.PIPE, text=True, check=True)
    seen = json.loads(played.stdout)
    sys.stdout.write(json.dumps(seen, indent=1))

    assert (seen["overlaps"], seen["strays"], seen["max_in_flight"]) == ([], [], 1)
    assert set(seen["ends_per_execution"]) == {"1"}
    assert (seen["unaccounted_slots"], seen["runs_without_slot"]) == ([], 0)
    assert seen["owed_slots"] > OLTS
    assert (seen["doubled_slots"], seen["doubled_successes"], seen["doubled_onus"]) == ([], [], 0)
    # A probe belongs to the process that asks; what nobody took of it died with that process.
    assert not [error for error in seen["errors"] if "no worker took it" in error and not error.startswith("probe")]
    assert seen["takeover_seconds"].keys() == {"leader killed", "leader stopped"}
    assert max(seen["takeover_seconds"].values()) <= LEASE_SECONDS + 5
    assert len(seen["served_again_seconds"]) == OLTS
    assert seen["served_again_seconds"][-1] <= LEASE_SECONDS + PACKET_SECONDS + 35
    # Nobody but who was killed ended, not even when Redis and PostgreSQL went away.
    assert seen["ended_by_themselves"] == {}
    assert seen["doubled_messages"]["snmp_default"] > OLTS
    # Two beats, of which each alone sends a message a second while Redis is there.
    assert seen["doubled_messages"]["zabbix_scheduler"] > seen["seconds_under_load"]
