"""What a simulation is to look like, checked before anything is started."""

from dataclasses import dataclass
from datetime import datetime
from ipaddress import ip_address

from facho.simulator.faults import ALL_HOSTILE, HOSTILE, NO_FAULTS, Faults
from facho.simulator.life import NATURAL, Life
from facho.simulator.onu import OFFLINE_SHARE
from facho.simulator.shape import Chassis
from facho.simulator.traps import NO_TRAP_FAULTS, TrapFaults

MIXED = "mixed"
MAX_UDP_PAYLOAD_BYTES = 65_507
# What every SNMP agent has to manage.
MIN_MESSAGE_BYTES = 484
MAX_PORT = 65_535


class ConfigError(ValueError):
    """The simulation cannot be configured like this; the text says why."""


@dataclass(frozen=True, slots=True)
class SimulatorConfig:
    """A fleet of simulated OLTs. `vendor` is a definition's key, a prefix of some, or `mixed`."""

    vendor: str = MIXED
    olts: int = 1
    onus: int = 64
    host: str = "127.0.0.1"
    port: int = 0
    latency_ms: float = 0.0
    loss: float = 0.0
    seed: int = 1
    community: str = "public"
    name_prefix: str = "olt"
    chassis: Chassis | None = None
    offline_share: float = OFFLINE_SHARE
    # ONUs waiting for authorisation on each OLT.
    waiting: int = 1
    # Seconds of world time that pass in a real second.
    speed: float = 1.0
    life: Life = NATURAL
    faults: Faults = NO_FAULTS
    # An attack on the manager by name, or `all`: one after the other. Empty: none.
    hostile: str = ""
    max_message_bytes: int = MAX_UDP_PAYLOAD_BYTES
    # Where notifications go, an address of this machine and a port; none are sent unless given.
    traps: tuple[str, int] | None = None
    # Their community; that of the OLTs unless given.
    trap_community: str = ""
    trap_faults: TrapFaults = NO_TRAP_FAULTS
    # The moment at which world time is 0; now, unless given.
    started_at: datetime | None = None

    def __post_init__(self) -> None:
        if self.olts < 1 or self.onus < 0 or self.waiting < 0:
            raise ConfigError("a simulation needs at least one OLT and no negative number of ONUs")
        if not (0 <= self.loss <= 1 and 0 <= self.offline_share <= 1):
            raise ConfigError("loss and the share of offline ONUs are between 0 and 1")
        if self.hostile and self.hostile not in (*HOSTILE, ALL_HOSTILE):
            raise ConfigError(f"{self.hostile!r} is not one of {', '.join([*HOSTILE, ALL_HOSTILE])}")
        if self.chassis and not self.chassis.holds(self.onus):
            raise ConfigError(f"{self.onus} ONUs do not fit on {self.chassis.used_ports} used ports of this chassis")
        if not self.community or len(self.community.split()) != 1 or len(self.name_prefix.split()) != 1:
            raise ConfigError("community and name are single words, because OLTs are announced as words of a line")
        if self.latency_ms < 0 or self.speed <= 0:
            raise ConfigError("latency must not be negative and speed must be above 0")
        if not 0 <= self.port <= MAX_PORT or (self.port and self.port + self.olts - 1 > MAX_PORT):
            raise ConfigError(f"{self.olts} OLTs do not fit on ports from {self.port} to {MAX_PORT}")
        self._check_traps()
        if not MIN_MESSAGE_BYTES <= self.max_message_bytes <= MAX_UDP_PAYLOAD_BYTES:
            raise ConfigError(f"an agent's messages have between {MIN_MESSAGE_BYTES} and {MAX_UDP_PAYLOAD_BYTES} bytes")

    def _check_traps(self) -> None:
        """A simulator that storms is a weapon, so it never aims at another machine."""
        faults, storm = self.trap_faults, self.trap_faults.storm
        if not all(0 <= share <= 1 for share in (faults.loss, faults.doubled, faults.disorder)):
            raise ConfigError("the shares of lost, doubled and late notifications are between 0 and 1")
        if min(faults.delay_seconds, faults.disorder_seconds) < 0 or (
            storm and min(storm.per_second, storm.seconds) < 0
        ):
            raise ConfigError("delays and storms of notifications must not be negative")
        if self.traps is None:
            return
        host, port = self.traps
        try:
            is_ours = ip_address(host).is_loopback
        except ValueError:
            is_ours = False
        if not is_ours or (":" in host) != (":" in self.host):
            raise ConfigError(f"notifications go to a loopback address only, not to {host!r}")
        if not 1 <= port <= MAX_PORT:
            raise ConfigError(f"notifications go to a port from 1 to {MAX_PORT}")
