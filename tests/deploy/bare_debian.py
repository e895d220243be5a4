"""A bare Debian that boots: made by mmdebstrap, started by systemd-nspawn without a network, gone afterwards."""

import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from textwrap import dedent

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/operations.md").read_text()
TOOLS = ("mmdebstrap", "systemd-nspawn", "nsenter", "unshare", "ip")
# What every server has that was installed by Debian's own means.
SERVER = ("systemd", "systemd-sysv", "dbus", "sudo", "ca-certificates", "openssl", "nftables")
# For the role of deploy/ansible, which is run inside.
ANSIBLE = ("ansible-core", "python3-apt")
# They read the manual page and the completions of the package.
READERS = ("man-db", "zsh", "fish")
# What is thrown away need not reach a disk.
UNSAFE = "force-unsafe-io"
MAKE = ("mmdebstrap", "--quiet", "--variant=minbase", f"--dpkgopt={UNSAFE}")
BOOT_SECONDS = 90
STOP_SECONDS = 10
# Until every unit has started; one that never does must not hold the tests for ever.
SETTLE_SECONDS = 300
PIP = "[global]\nno-index = true\nfind-links = /srv/wheels\ndisable-pip-version-check = true\n"
CHECKOUT = "/srv/facho"
# Where the groups of processes are kept that an init manages, in the first and the second generation.
CGROUPS = [Path("/sys/fs/cgroup", name) for name in ("systemd", "unified", "")]


KEPT = ("auth_user", "auth_group", "alerts_alertrule")
APT = "sudo apt-get install "
# What is missing where one of them fails. They run in namespaces that end with them.
PROBES = {
    "no overlay can be mounted here": "mount -t overlay overlay -o lowerdir=lower,upperdir=upper,workdir=work root",
    "no cable between two machines can be made here": "ip link add one type veth peer two",
}
OLTS = "name,host,port,vendor,version,community\n{},{},161,huawei,2c,public\n"


LATER = """
from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("hosts", "{}")]
    operations = [migrations.RunSQL("CREATE TABLE later (id integer)")]
"""


class CannotMake(Exception):
    """This machine cannot have a bare Debian; the message says why."""


def blocks_of(heading: str, page: str = PAGE) -> list[str]:
    """Return the blocks of commands of one part of the page, in their order, until the next heading of any level."""
    return dict(parts_of(page))[heading]


def parts_of(page: str = PAGE) -> Iterator[tuple[str, list[str]]]:
    """Yield every heading with its blocks of commands, those for a console without their prompts."""
    # A comment in a block is no heading.
    hidden = re.sub(
        r"^ *```\w+\n.*?^ *```$", lambda block: block[0].replace("\n#", "\n\0"), page, flags=re.DOTALL | re.MULTILINE
    )
    for part in re.split(r"^#+ ", hidden, flags=re.MULTILINE)[1:]:
        heading, _end, text = part.partition("\n")
        # In a list they are indented.
        blocks = re.findall(r"^( *)```(?:sh|console)\n(.*?)^\1```$", text, re.MULTILINE | re.DOTALL)
        plain = [dedent(block.replace("\0", "#")) for _indent, block in blocks]
        yield heading, [re.sub(r"^\$ ", "", block, flags=re.MULTILINE) for block in plain]


def packages_of_page() -> list[str]:
    """List what the page installs. Inside there is no network: apt-get finds this installed, and nothing else."""
    lines = [line for _heading, blocks in parts_of() for block in blocks for line in block.splitlines()]
    installs = [line.removeprefix(APT) for line in lines if line.startswith(APT) and "./" not in line]
    return sorted({package for packages in installs for package in packages.split()})


def make_base(folder: Path) -> Path:
    """Make a Debian in a folder, once for all tests; it needs root, the tools, and Debian's packages."""
    if os.geteuid() != 0:
        raise CannotMake("only root can make and boot a Debian")
    if missing := [tool for tool in TOOLS if not shutil.which(tool)]:
        raise CannotMake(f"not installed: {' '.join(missing)}")
    probe_kernel(folder)
    base = folder / "base"
    made = subprocess.run(
        [*MAKE, f"--include={','.join((*SERVER, *ANSIBLE, *READERS, *packages_of_page()))}", "bookworm", base],
        capture_output=True,
        text=True,
        check=False,
    )
    if made.returncode:
        raise CannotMake(f"mmdebstrap: {made.stderr.strip().splitlines()[-1:]}")
    return base


def probe_kernel(folder: Path) -> None:
    """Refuse a machine whose root may not do what booting needs. Where it may, a boot that fails is a failure."""
    for name in ("lower", "upper", "work", "root"):
        (folder / name).mkdir()
    for missing, script in PROBES.items():
        probe = ["unshare", "--mount", "--net", "sh", "-ec", script]
        done = subprocess.run(probe, cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode:
            raise CannotMake(f"{missing}: {done.stderr.strip()[-200:]}")
    try:
        with _own_groups(folder.name) as groups:
            if not groups:
                raise CannotMake("no groups of processes are mounted below /sys/fs/cgroup")
    except OSError as error:
        raise CannotMake(f"groups of processes cannot be made here: {error}") from error


@contextmanager
def usual_umask() -> Iterator[None]:
    """Make files as an administrator's shell would: the product's own umask would close a whole system to its users."""
    before = os.umask(0o022)
    try:
        yield
    finally:
        os.umask(before)


class Machine:
    """A booted Debian, and commands in it."""

    def __init__(self, root: Path, leader: int) -> None:
        self.root, self.leader = root, leader

    def run(self, script: str, *, stdin: str = "", folder: str = CHECKOUT) -> str:
        """Run lines one after the other; the first that fails is named, with what it printed."""
        done = self.try_to(script, stdin=stdin, folder=folder)
        assert done.returncode == 0, f"status {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def try_to(self, script: str, *, stdin: str = "", folder: str = CHECKOUT) -> subprocess.CompletedProcess[str]:
        path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        enter = ["nsenter", "-t", str(self.leader), "-m", "-u", "-i", "-n", "-p", "setsid", "env", "-i", f"PATH={path}"]
        return subprocess.run(
            [*enter, "HOME=/root", "LANG=C.UTF-8", "bash", "-exc", f"cd {folder}\n{script}"],
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
        )

    def give_addresses(self, *addresses: str) -> None:
        """Give it further addresses on its loopback."""
        for address in addresses:
            inside = ["nsenter", "-t", str(self.leader), "-n", "ip", "address", "replace", f"{address}/32", "dev", "lo"]
            subprocess.run(inside, check=True)

    def ready(self) -> str:
        """Return the answer of /readyz, waiting for a green one for a minute."""
        ask = "import urllib.request as u; print(u.urlopen('http://127.0.0.1:8000/readyz', timeout=5).read().decode())"
        done = self.try_to(
            f'for i in $(seq 60); do python3 -c "{ask}" 2>/dev/null && exit; sleep 1; done; exit 1', folder="/"
        )
        assert done.returncode == 0, self.try_to("journalctl --no-pager -n 60", folder="/").stdout
        return done.stdout


def commit_next(machine: Machine) -> None:
    """Have the next version where git pull finds it: one more migration; by its date it is the same on all machines."""
    name = f"{CHECKOUT}/src/facho/hosts/migrations/0999_later.py"
    machine.run(f"cat > {name} && git add {name}", stdin=later_migration())
    machine.run(
        "export GIT_AUTHOR_DATE=2026-01-01T00:00Z GIT_COMMITTER_DATE=2026-01-01T00:00Z"
        " && git -c user.name=t -c user.email=t@example.net commit --quiet -m Next && git branch next"
        " && git reset --quiet --hard HEAD~ && git config remote.origin.url /srv/facho/.git"
        " && git config branch.$(git branch --show-current).merge refs/heads/next"
    )


def later_migration() -> str:
    """Return a migration of a later version, which makes an empty table."""
    return LATER.format(max(path.stem for path in (ROOT / "src/facho/hosts/migrations").glob("0*.py")))


def add_olts(machine: Machine, name: str = "centro-1", address: str = "192.0.2.10") -> None:
    machine.run("cat > /srv/olts.csv && chmod 644 /srv/olts.csv", stdin=OLTS.format(name, address))
    machine.run("sudo -u facho facho olt import /srv/olts.csv")


def count_rows(ask: Callable[[str], str], *others: str) -> dict[str, int]:
    """Count by psql what tables have that no process writes by itself, and some others."""
    counts = {table: int(ask(f"select count(*) from {table}")) for table in (*KEPT, *others)}  # noqa: S608 our own names
    assert all(counts[table] for table in KEPT)
    return counts


@contextmanager
def booted(base: Path, wheels: Path, name: str = "debian") -> Iterator[Machine]:
    """Boot a layer over the base with the checkout and the wheels in it; the layer goes in the end."""
    with tempfile.TemporaryDirectory(prefix="facho-debian-") as folder, ExitStack() as left:
        root, upper, work = (Path(folder) / part for part in ("root", "upper", "work"))
        for made in (root, upper, work):
            made.mkdir(mode=0o755)
        layers = f"lowerdir={base},upperdir={upper},workdir={work}"
        subprocess.run(["mount", "-t", "overlay", "overlay", "-o", layers, root], check=True)
        left.callback(subprocess.run, ["umount", root], check=True)
        (root / "etc/pip.conf").write_text(PIP)
        (root / "etc/dpkg/dpkg.cfg.d/unsafe").write_text(f"{UNSAFE}\n")
        (root / "etc/hostname").write_text(f"{name}\n")
        (root / "etc/hosts").write_text(f"127.0.0.1 localhost {name}\n")
        (root / "srv/wheels").mkdir()
        subprocess.run(["git", "clone", "--quiet", "--no-hardlinks", ROOT, root / CHECKOUT[1:]], check=True)
        nspawn = ["systemd-nspawn", "--quiet", "--register=no", "--keep-unit", "--private-network", "--boot"]
        groups = left.enter_context(_own_groups(Path(folder).name))
        enter = "".join(f"echo $$ > {group}/cgroup.procs; " for group in groups)
        started = subprocess.Popen(
            [
                "sh",
                "-c",
                f'{enter}exec "$@"',
                "sh",
                *nspawn,
                "--console=read-only",
                f"--bind-ro={wheels}:/srv/wheels",
                "-D",
                root,
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        left.callback(_stop, started)
        machine = Machine(root, _leader_of(started))
        machine.run(f"timeout {SETTLE_SECONDS} systemctl is-system-running --wait || true", folder="/")
        yield machine


@contextmanager
def _own_groups(name: str) -> Iterator[list[Path]]:
    """Make a group of processes for one machine: two inits that manage the same one would end each other's services."""
    groups = [folder / name for folder in CGROUPS if (folder / "cgroup.procs").exists()]
    for group in groups:
        group.mkdir()
    try:
        yield groups
    finally:
        for group in groups:
            _remove(group)


def _remove(group: Path) -> None:
    """Remove a group of processes with those in it, once the last process is gone."""
    give_up_at = time.monotonic() + STOP_SECONDS
    for each in [*sorted((path for path in group.rglob("*") if path.is_dir()), reverse=True), group]:
        while (each / "cgroup.procs").read_text() and time.monotonic() < give_up_at:
            subprocess.run(["sleep", "0.1"], check=True)
        each.rmdir()


def connect(*machines: Machine) -> None:
    """Join two machines by a cable, as 192.0.2.1 and 192.0.2.2; no other network has anything to do with it."""
    ends = [f"name eth0 netns {machine.leader}".split() for machine in machines]
    subprocess.run(["ip", "link", "add", *ends[0], "type", "veth", "peer", *ends[1]], check=True)
    for number, machine in enumerate(machines, start=1):
        inside = ["nsenter", "-t", str(machine.leader), "-n", "ip"]
        subprocess.run([*inside, "address", "add", f"192.0.2.{number}/24", "dev", "eth0"], check=True)
        subprocess.run([*inside, "link", "set", "eth0", "up"], check=True)


def _stop(started: "subprocess.Popen[bytes]") -> None:
    """Switch the machine off: with its init all of it is killed. The init would outlive systemd-nspawn."""
    for child in _children_of(started):
        os.kill(child, signal.SIGKILL)
    with suppress(subprocess.TimeoutExpired):
        started.wait(STOP_SECONDS)
    started.kill()
    started.wait()


def _children_of(started: "subprocess.Popen[bytes]") -> list[int]:
    with suppress(FileNotFoundError):
        return [int(child) for child in Path(f"/proc/{started.pid}/task/{started.pid}/children").read_text().split()]
    return []


def _leader_of(started: "subprocess.Popen[bytes]") -> int:
    give_up_at = time.monotonic() + BOOT_SECONDS
    while time.monotonic() < give_up_at and started.poll() is None:
        for child in _children_of(started):
            if Path(f"/proc/{child}/comm").read_text().strip() == "systemd":
                _pause(started, 2)
                return child
        _pause(started, 0.2)
    raise AssertionError(f"systemd-nspawn did not boot: status {started.poll()}")


def _pause(started: "subprocess.Popen[bytes]", seconds: float) -> None:
    """Give it time, unless it ends."""
    with suppress(subprocess.TimeoutExpired):
        started.wait(seconds)
