"""A private net-snmp agent: a free loopback port, a throw-away folder, another user when the run is root's.

It answers v1 and v2c with the community `public` and v3 to the users given. `walk` reads it, or any other agent,
with net-snmp's own snmpbulkwalk; `start_notifier` runs its snmptrap and snmpinform.
"""

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from facho.polling.snmp.ber import Pdu, PduKind, SnmpMessage, Tag, Value, VarBind, encode_message
from facho.polling.snmp.oid import SYS_UP_TIME, Oid, format_oid, parse_oid
from servers.child import end_with_parent, free_port

COMMUNITY = "public"
ACCOUNT = "nobody"
START_SECONDS = 30
STOP_SECONDS = 10
WALK_SECONDS = 60
PORT_ATTEMPTS = 5
# What the tool prints in place of a value behind the last object of an agent.
END_OF_MIB = "No more variables left"
# A module that would claim a TCP port of its own.
WITHOUT = "-smux"
# snmpd's names of the types that its `override` can give to an object.
OVERRIDE_TYPES = {
    Tag.INTEGER: "integer",
    Tag.OCTET_STRING: "octet_str",
    Tag.OBJECT_IDENTIFIER: "object_id",
    Tag.COUNTER32: "counter",
    Tag.GAUGE32: "uinteger",
    Tag.TIMETICKS: "timeticks",
}
_PROBE = encode_message(SnmpMessage(1, COMMUNITY.encode(), Pdu(PduKind.GET, 1, 0, 0, [(SYS_UP_TIME, Tag.NULL, None)])))


class AgentDidNotStart(Exception):
    """The agent ended or stayed silent; the message holds the end of its log."""


@dataclass(frozen=True, slots=True)
class SnmpdUser:
    """A v3 user, with the protocols as net-snmp calls them (SHA-256, AES192, ...)."""

    name: str
    auth_protocol: str = ""
    auth_key: str = ""
    priv_protocol: str = ""
    priv_key: str = ""

    @property
    def config(self) -> list[str]:
        """The lines that make the user and let it read everything at its own level and no lower one."""
        words = ["createUser", self.name]
        if self.auth_protocol:
            words += [self.auth_protocol, f'"{self.auth_key}"']
        if self.priv_protocol:
            words += [self.priv_protocol, f'"{self.priv_key}"']
        level = "priv" if self.priv_protocol else "auth" if self.auth_protocol else "noauth"
        return [" ".join(words), f"rouser {self.name} {level}"]

    @property
    def arguments(self) -> list[str]:
        """What net-snmp's tools need to ask as this user."""
        level = "authPriv" if self.priv_protocol else "authNoPriv" if self.auth_protocol else "noAuthNoPriv"
        arguments = ["-v3", "-u", self.name, "-l", level]
        if self.auth_protocol:
            arguments += ["-a", self.auth_protocol, "-A", self.auth_key]
        if self.priv_protocol:
            arguments += ["-x", self.priv_protocol, "-X", self.priv_key]
        return arguments


@dataclass(slots=True)
class Snmpd:
    """A running agent, and what it takes to run it again."""

    folder: Path
    port: int
    process: subprocess.Popen[bytes]
    address: str = "127.0.0.1"

    @property
    def endpoint(self) -> str:
        """The agent as net-snmp's tools want it named."""
        return f"udp:{self.address}:{self.port}"

    def restart(self) -> None:
        """Stop and start on the same port; for v3 its engine is the same, booted once more."""
        self.stop()
        self.process = _run(self.folder, self.port)
        if not _answers(self.process, self.port):
            raise AgentDidNotStart(_end_of_log(self.folder))

    def stop(self) -> None:
        """End the process, in bounded time."""
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(timeout=STOP_SECONDS)


@contextmanager
def private_snmpd(
    *, users: Iterable[SnmpdUser] = (), objects: Iterable[VarBind] = (), config: Iterable[str] = ()
) -> Iterator[Snmpd]:
    """Run an agent that shows this machine, and beside it the `objects`, whose values stand still."""
    with tempfile.TemporaryDirectory(prefix="facho-snmpd-") as name:
        folder = Path(name)
        lines = [f"rocommunity {COMMUNITY}", *(line for user in users for line in user.config)]
        lines += [*map(_override, objects), *config]
        _prepare(folder, lines)
        agent = _start(folder)
        try:
            yield agent
        finally:
            agent.stop()


def walk(endpoint: str, arguments: Sequence[str], oid: Oid) -> list[VarBind]:
    """Return what snmpbulkwalk finds under an OID, types included; `arguments` say as whom (`-v2c -c public`)."""
    command = ["snmpbulkwalk", *arguments, "-r1", "-t5", "-On", "-Ox", "-Ot", "-Oe", endpoint, format_oid(oid)]
    done = subprocess.run(command, env=_environ(), capture_output=True, text=True, timeout=WALK_SECONDS, check=True)
    # Long strings go on in lines of their own.
    rows = [row.replace("\n", "") for row in f"\n{done.stdout.rstrip()}".split("\n.")[1:]]
    return [_read(row) for row in rows if END_OF_MIB not in row]


def start_notifier(
    tool: str, arguments: Sequence[str], parameters: Sequence[str], folder: Path
) -> subprocess.Popen[str]:
    """Run snmptrap or snmpinform; the engine that it makes for itself is kept in the folder."""
    return subprocess.Popen(
        [tool, *arguments, *parameters],
        env=_environ() | {"SNMP_PERSISTENT_DIR": str(folder)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def _read(row: str) -> VarBind:
    name, _, typed = row.partition(" = ")
    kind, separator, text = typed.partition(": ")
    return (parse_oid(name), *_value(kind if separator else typed, text if separator else typed))


def _value(kind: str, text: str) -> tuple[int, Value]:
    integers = {"INTEGER": Tag.INTEGER, "Gauge32": Tag.GAUGE32, "Counter32": Tag.COUNTER32, "Counter64": Tag.COUNTER64}
    if kind in integers:
        return integers[kind], int(text)
    if kind == '""':
        return Tag.OCTET_STRING, b""
    if kind == "Hex-STRING":
        return Tag.OCTET_STRING, bytes.fromhex(text)
    if kind == "OID":
        return Tag.OBJECT_IDENTIFIER, parse_oid(text)
    if kind == "IpAddress":
        return Tag.IP_ADDRESS, socket.inet_aton(text)
    # Asked for raw numbers, the tool leaves the type of time ticks out.
    return Tag.TIMETICKS, int(text)


def _override(row: VarBind) -> str:
    oid, tag, value = row
    if isinstance(value, bytes):
        text = f'"{value.decode("ascii")}"'
    else:
        text = format_oid(value) if isinstance(value, tuple) else str(value)
    return f"override .{format_oid(oid)} {OVERRIDE_TYPES[Tag(tag)]} {text}"


def _prepare(folder: Path, lines: Sequence[str]) -> None:
    state, file = folder / "state", folder / "snmpd.conf"
    state.mkdir()
    file.write_text("\n".join([*lines, ""]))
    account = _account()
    if account:
        folder.chmod(0o711)
        for path in (state, file):
            shutil.chown(path, account)


def _start(folder: Path) -> Snmpd:
    """Start on a free port; another process may take it first, so try a few."""
    for _ in range(PORT_ATTEMPTS):
        port = free_port(socket.SOCK_DGRAM)
        process = _run(folder, port)
        if _answers(process, port):
            return Snmpd(folder, port, process)
    raise AgentDidNotStart(_end_of_log(folder))


def _run(folder: Path, port: int) -> subprocess.Popen[bytes]:
    program = shutil.which("snmpd", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if program is None:
        raise FileNotFoundError("net-snmp's agent is not installed: run `make test`, or apt-get install snmp snmpd")
    state = folder / "state"
    # Its configuration is found by the path alone: reported a file, it would not read what it kept of its last run.
    environ = _environ() | {"SNMPCONFPATH": f"{folder}:{state}", "SNMP_PERSISTENT_DIR": str(state)}
    with (folder / "log").open("ab") as output:
        return subprocess.Popen(
            [program, "-f", "-Lo", "-r", "-I", WITHOUT, f"udp:127.0.0.1:{port}"],
            user=_account(),
            cwd=state,
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            # Out of the terminal's group: Ctrl-C reaches us, and we end the agent.
            process_group=0,
            preexec_fn=partial(end_with_parent, signal.SIGTERM),
        )


def _end_of_log(folder: Path) -> str:
    return (folder / "log").read_text(errors="replace")[-2000:]


def _environ() -> dict[str, str]:
    """No names of objects: numbers need no definitions, and their search is most of a tool's start."""
    return {**os.environ, "MIBS": "", "SNMPCONFPATH": "/nonexistent"}


def _account() -> str | None:
    """Name the user to run as, or nothing when this process is no root."""
    return pwd.getpwnam(ACCOUNT).pw_name if os.geteuid() == 0 else None


def _answers(agent: subprocess.Popen[bytes], port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.settimeout(0.1)
        probe.connect(("127.0.0.1", port))
        for _ in range(START_SECONDS * 10):
            try:
                probe.send(_PROBE)
                probe.recv(2048)
            except (TimeoutError, ConnectionRefusedError):
                try:
                    agent.wait(timeout=0.05)
                except subprocess.TimeoutExpired:
                    continue
                return False
            return True
    agent.kill()
    agent.wait()
    return False
