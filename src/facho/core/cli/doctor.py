"""`facho doctor`: examines an installation, one machine or several together; each finding says what to do."""

import os
import shutil
import time
from argparse import Namespace
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import partial
from pathlib import Path

from django.conf import settings
from django.core.checks import run_checks
from django.db import Error, connection
from django.db.migrations.recorder import MigrationRecorder
from django.db.models import Count, Max
from django.utils import timezone
from django.utils.timezone import localtime
from django.utils.translation import gettext as _
from redis import Redis, RedisError

from facho.accounts.ldap import DirectoryAway, check_directory
from facho.accounts.oidc import BadAnswer
from facho.core.checks import TAG
from facho.core.cli.backup import find_last_backup
from facho.core.cli.keys import survey
from facho.core.cli.output import cell, dump
from facho.core.data_folder import DataFolder, find_abandoned, is_engine_alive, others_may_enter
from facho.core.database import named, read_database_version
from facho.core.env import Mode
from facho.core.product import MIGRATE, between_versions
from facho.core.redis import RedisFailure, ping
from facho.dashboard.account.sign_on import ProviderAway, load_provider
from facho.executions.celery_executor import queues_of
from facho.executions.models import ProductProcess
from facho.executions.processes import VERSION, load_live_processes, load_longest_waits, load_still_workers
from facho.hosts.models import Olt
from facho.infrastructure.standstill import WORDS
from facho.infrastructure.storage import CHECK_SECONDS, find_damage, sqlite_file
from facho.neighbours.models import Webhook
from facho.neighbours.netbox import NetBoxAway, fetch_count
from facho.polling.domain.lease import Shard
from facho.polling.domain.planning import DEFAULT_GROUP
from facho.polling.domain.ports import CLOCK_TOLERANCE
from facho.polling.snmp import pages
from facho.zabbix_pollers.activity import our_shards
from facho.zabbix_pollers.models import LeaderLease, Poller
from facho.zabbix_pollers.store import Leader, load_leaders

LITTLE_DISK_BYTES = 1024**3
NO_DISK_BYTES = 100 * 1024**2
# This was written later, so a clock that shows less is wrong.
EARLIEST_NOW = datetime(2025, 1, 1, tzinfo=UTC)
REDIS_SECONDS = 3.0
VERDICT_WIDTH = len("warning")
# By then a claim has been handed out again, and every worker has looked for it.
LONG_WAIT = timedelta(seconds=30)
# A leader renews every five seconds at least.
WATCH_SECONDS, WATCH_PAUSE_SECONDS = 10.0, 0.5
# Beat sends a message a second: none was read for minutes.
MANY_BEATS = 300
# By then a program has been restarted.
WEBHOOK_PATIENCE = timedelta(minutes=10)
BEAT_QUEUE = "zabbix_scheduler"


class Verdict(StrEnum):
    """How bad a finding is; only an error makes the doctor fail."""

    OK = "ok"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class DoctorFinding:
    verdict: Verdict
    name: str
    text: str


def ok(name: str, text: str) -> DoctorFinding:
    return DoctorFinding(Verdict.OK, name, text)


def warning(name: str, text: str) -> DoctorFinding:
    return DoctorFinding(Verdict.WARNING, name, text)


def error(name: str, text: str) -> DoctorFinding:
    return DoctorFinding(Verdict.ERROR, name, text)


def _time_since(started_at: datetime, monotonic: float) -> datetime:
    # Checking a large database takes minutes.
    return started_at + timedelta(seconds=time.monotonic() - monotonic)


def show_findings(arguments: Namespace) -> int:
    findings = list(examine(timezone.now()))
    if arguments.as_json:
        dump([asdict(finding) for finding in findings])
    else:
        width = max(len(finding.name) for finding in findings)
        for finding in findings:
            print(f"{finding.verdict:<{VERDICT_WIDTH}}  {finding.name:<{width}}  {cell(finding.text)}")
    return int(any(finding.verdict is Verdict.ERROR for finding in findings))


def examine(now: datetime) -> Iterator[DoctorFinding]:
    """Look at everything; creates and changes nothing."""
    watch = partial(_time_since, now, time.monotonic())
    folder: DataFolder = settings.DATA_FOLDER
    if _is_closed(folder.path):
        text = _("%s is not accessible for this user: run it as the owner of the folder.")
        yield error("data-folder", text % folder.path)
        return
    messages = run_checks(tags=[TAG])
    if not messages:
        yield ok("settings", _("mode %s") % settings.FACHO_MODE)
    for message in messages:
        verdict = Verdict.ERROR if message.is_serious() else Verdict.WARNING
        yield DoctorFinding(verdict, "settings", f"{message.msg} {message.hint or ''}".strip())
    yield _decoder()
    yield _data_folder(folder.path)
    text = _("An interrupted backup, restore or first start left it, perhaps with secrets. Run: rm -r %s")
    for place in sorted({folder.path, folder.secret_key.parent, folder.encryption_keys.parent}):
        yield from (warning("unfinished", text % left) for left in find_abandoned(place))
    yield _disk(folder.path)
    file = sqlite_file()
    # Looking at a SQLite file that is not there would create it.
    if file is None or file.exists():
        yield from _integrity(folder)
        try:
            yield from _database(watch)
        except Error as failure:
            yield error("database", next(iter(str(failure).splitlines()), type(failure).__name__))
    else:
        yield _no_database(folder.path, file.parent)
    if settings.FACHO_MODE is Mode.DISTRIBUTED:
        try:
            ping(settings.REDIS_URL, timeout_seconds=REDIS_SECONDS)
            yield ok("redis", _("answers"))
        except RedisFailure as failure:
            yield error("redis", _("%s: start it, or correct REDIS_URL.") % failure)
    yield from _sign_on(watch())
    if settings.FACHO_NETBOX_URL:
        yield _netbox()


def _sign_on(now: datetime) -> Iterator[DoctorFinding]:
    """Ask provider and directory as a sign-on does; local accounts work without them, so it is never an error."""
    ways: dict[str, Callable[[], object]] = {
        settings.FACHO_OIDC_ISSUER: lambda: load_provider(now),
        settings.FACHO_LDAP_URL: check_directory,
    }
    for server, look in ways.items():
        if not server:
            continue
        try:
            look()
        except (ProviderAway, BadAnswer, DirectoryAway) as failure:
            text = _("%(server)s: %(failure)s. Sign-on through it fails until this is fixed.")
            yield warning("sign-on", text % {"server": server, "failure": failure})
        else:
            yield ok("sign-on", _("%s answers") % server)


def _netbox() -> DoctorFinding:
    """Ask NetBox as a sync does; polling needs it for nothing, so it is never an error."""
    try:
        count = fetch_count()
    except NetBoxAway as failure:
        return warning("netbox", str(failure))
    if not count:
        text = _("NetBox shows no device with these roles: %s. Check that the token may view devices.")
        return warning("netbox", text % ", ".join(settings.FACHO_NETBOX_ROLES))
    return ok("netbox", _("%(server)s: %(n)s devices") % {"server": settings.FACHO_NETBOX_URL, "n": count})


def _decoder() -> DoctorFinding:
    if pages.is_compiled():
        return ok("decoder", _("SNMP answers are decoded by the compiled module"))
    text = _(
        "SNMP answers are decoded in Python, which takes five times the CPU: install gcc and "
        "python3-dev, then reinstall Facho."
    )
    return warning("decoder", text)


def _is_closed(path: Path) -> bool:
    """Return whether this user may not read the folder: then nothing in it can be checked."""
    try:
        return path.is_dir() and not os.access(path, os.R_OK | os.X_OK)
    except PermissionError:
        return True


def _data_folder(path: Path) -> DoctorFinding:
    if not path.exists():
        return warning("data-folder", _("%s does not exist yet: `facho run` creates it.") % path)
    if not path.is_dir() or not os.access(path, os.R_OK | os.W_OK | os.X_OK):
        return error("data-folder", _("This user cannot write to the folder %s: set FACHO_DATA_DIR.") % path)
    if others_may_enter(path):
        return warning("data-folder", _("Other users may enter it; run: chmod 700 %s") % path)
    return ok("data-folder", str(path))


def _disk(path: Path) -> DoctorFinding:
    existing = next(folder for folder in (path, *path.parents) if folder.exists())
    free = shutil.disk_usage(existing).free
    text = _("%s MiB free") % (free // 1024**2)
    if free < NO_DISK_BYTES:
        return error("disk", _("%s: free some space, or writing stops.") % text)
    return warning("disk", _("%s: free some space soon.") % text) if free < LITTLE_DISK_BYTES else ok("disk", text)


def _integrity(folder: DataFolder) -> Iterator[DoctorFinding]:
    """Check a SQLite file for damage, which most reads would never meet; a server looks after its own files."""
    database = sqlite_file()
    if database is None:
        return
    damage = find_damage(database, seconds=CHECK_SECONDS)
    if damage is None:
        yield warning("integrity", _("The check did not finish within %s s.") % int(CHECK_SECONDS))
    elif damage:
        text = _("%(file)s is damaged (%(found)s): stop Facho, move it away and run `facho restore %(backup)s`.")
        backup = find_last_backup(folder) or _("FILE")
        yield error("integrity", text % {"file": database, "found": damage, "backup": backup})
    else:
        yield ok("integrity", _("no damage found"))


def _no_database(data_folder: Path, parent: Path) -> DoctorFinding:
    """Distinguish a first start, which creates the file, from a path where nothing can be created."""
    if parent != data_folder and not parent.is_dir():
        return error("database", _("There is no folder %s for it: make one, or correct DATABASE_URL.") % parent)
    return warning("database", _("There is none yet: `facho run` creates it."))


def _database(watch: Callable[[], datetime]) -> Iterator[DoctorFinding]:
    connection.ensure_connection()
    yield ok("database", connection.vendor)
    version = read_database_version()
    if version.halfway:
        yield error("migrations", between_versions(named(version.halfway)))
        return
    if version.unknown:
        text = _("The database was made by a newer version of Facho (%s): install that version.")
        yield error("migrations", text % named(version.unknown))
        return
    if version.missing:
        name = named(version.missing)
        if settings.FACHO_MODE is Mode.EMBEDDED:
            yield warning("migrations", _("%s is not applied: `facho run` does it.") % name)
        else:
            text = _("%(name)s is not applied: run `%(command)s`.")
            yield error("migrations", text % {"name": name, "command": MIGRATE})
        return
    yield ok("migrations", _("all applied"))
    yield _credentials()
    yield from _engine(watch())
    if settings.FACHO_MODE is Mode.DISTRIBUTED:
        yield from examine_cluster(watch())
    yield from _webhooks(watch())
    yield _clock(watch)


def _webhooks(now: datetime) -> Iterator[DoctorFinding]:
    """Name the webhooks whose program accepts nothing; an absence of some minutes is ignored."""
    rows = Webhook.objects.filter(enabled=True).order_by("name").values_list("name", "failing_since", "last_error")
    text = _(
        "%(name)s has accepted nothing since %(time)s (%(error)s): repair its program, then send a test on its page."
    )
    for name, since, why in rows:
        if since is None or now - since < WEBHOOK_PATIENCE:
            yield ok("webhook", name)
        else:
            shown = localtime(since).strftime("%Y-%m-%d %H:%M")
            yield warning("webhook", text % {"name": name, "time": shown, "error": why})


def _credentials() -> DoctorFinding:
    keys = tuple(settings.FACHO_ENCRYPTION_KEYS)
    found = survey(keys)
    if found.unreadable:
        text = _("%s stored secrets cannot be decrypted: restore the encryption keys file, or enter them again.")
        return error("credentials", text % found.unreadable)
    if len(keys) > 1:
        text = _("The key file holds %(keys)s keys, %(n)s secrets are under an older one; run: facho keys rotate")
        return warning("credentials", text % {"keys": len(keys), "n": found.older})
    return ok("credentials", _("of %s OLTs, all readable") % Olt.objects.count())


def _engine(now: datetime) -> Iterator[DoctorFinding]:
    is_embedded = settings.FACHO_MODE is Mode.EMBEDDED
    if is_embedded and not is_engine_alive(settings.DATA_FOLDER):
        yield warning("engine", _("It is not running, so nothing is polled: start it with `facho run`."))
        return
    if is_embedded:
        yield ok("engine", _("running"))
    start = _("restart Facho") if is_embedded else _("start `facho scheduler`")
    leaders = load_leaders(our_shards())
    if any(_is_in_doubt(leader, now) for leader in leaders.values()):
        leaders = _watch_leaders(leaders, now)
    for shard, leader in leaders.items():
        finding = _leader(leader, now, start=start)
        yield finding if shard.is_whole else replace(finding, text=f"{shard}: {finding.text}")


def _is_in_doubt(leader: Leader, now: datetime) -> bool:
    if leader.renewed_at is None:
        return False
    return not -CLOCK_TOLERANCE <= now - leader.renewed_at <= _lease()


def _lease() -> timedelta:
    return timedelta(seconds=settings.FACHO_LEASE_SECONDS)


def _watch_leaders(before: Mapping[Shard, Leader], now: datetime) -> dict[Shard, Leader]:
    """Look whether leases are renewed: their times are those of other clocks, which may differ from ours."""
    give_up_at = time.monotonic() + WATCH_SECONDS
    while True:
        time.sleep(WATCH_PAUSE_SECONDS)
        leaders = load_leaders(list(before))
        moved = {shard for shard, leader in leaders.items() if leader.counter != before[shard].counter}
        still = [shard for shard, leader in before.items() if _is_in_doubt(leader, now) and shard not in moved]
        if not still or time.monotonic() >= give_up_at:
            return {shard: replace(each, renewed_at=now) if shard in moved else each for shard, each in leaders.items()}


def _leader(leader: Leader, now: datetime, *, start: str) -> DoctorFinding:
    if leader.renewed_at is None:
        return warning("leader", _("No scheduler has led yet: wait a minute, or %s.") % start)
    age = now - leader.renewed_at
    if age > _lease():
        return error(
            "leader",
            _("No scheduler has led for %(age)s s: %(start)s.") % {"age": int(age.total_seconds()), "start": start},
        )
    if leader.standstill:
        words = WORDS[leader.standstill]
        return error("leader", _("It starts nothing: %(what)s %(remedy)s") % words._asdict())
    return ok("leader", leader.owner)


def _clock(watch: Callable[[], datetime]) -> DoctorFinding:
    seen: list[datetime | None]
    if connection.vendor == "postgresql":
        # Stored times are those of other machines, whose clocks are findings of their own.
        with connection.cursor() as cursor:
            cursor.execute("SELECT clock_timestamp()")
            seen = [cursor.fetchone()[0]]
    else:
        # This machine wrote them, so they are past.
        seen = [
            MigrationRecorder.Migration.objects.aggregate(latest=Max("applied"))["latest"],
            LeaderLease.objects.aggregate(latest=Max("renewed_at"))["latest"],
        ]
    # Others keep writing, so the clock is read after the rows it is compared with.
    now = watch()
    if now < EARLIEST_NOW:
        return error("clock", _("It shows %s: set the clock of this machine.") % f"{now:%Y-%m-%d}")
    ahead = max(filter(None, seen), default=now) - now
    if ahead > CLOCK_TOLERANCE:
        text = _("It is %s s behind the database: synchronise the clock of every machine by NTP.")
        return error("clock", text % int(ahead.total_seconds()))
    return ok("clock", now.isoformat(timespec="seconds"))


def examine_cluster(now: datetime) -> Iterator[DoctorFinding]:
    """Look at processes, groups and queues; creates and changes nothing."""
    processes = load_live_processes()
    pollers = dict(Poller.objects.order_by("group").values_list("group").annotate(n=Count("id")))
    yield from _slots(processes, pollers)
    # They say that they live and complete nothing, while others of their groups do.
    for worker in load_still_workers():
        text = _("%(worker)s completes nothing although its group has work: restart it.")
        yield error("consumption", text % {"worker": worker.owner})
    yield from _groups(pollers)
    yield _versions(processes)
    yield _clocks(processes)
    yield from _queues(list(pollers) or [DEFAULT_GROUP], now)


def _slots(processes: Sequence[ProductProcess], pollers: Mapping[str, int]) -> Iterator[DoctorFinding]:
    """Compare, group by group, what may run at once with what could be carried out at once."""
    slots = Counter[str]()
    for process in processes:
        for group in process.groups:
            slots[group] += process.slots
    for group, count in pollers.items():
        name, shown = _named("workers", group), {"slots": slots[group], "pollers": count}
        if not slots[group]:
            command = f"celery -A facho.core worker -Q {','.join(queues_of(group))} -c {count + 1}"
            yield error(name, _("No worker reports, so nothing is polled: start `%s`.") % command)
        elif slots[group] < count:
            text = _("%(slots)s slots for %(pollers)s pollers: start more workers, or give them more slots (-c).")
            yield error(name, text % shown)
        else:
            yield ok(name, _("%(slots)s slots for %(pollers)s pollers") % shown)


def _groups(pollers: Mapping[str, int]) -> Iterator[DoctorFinding]:
    known = {group: count for group, count in pollers.items() if group != DEFAULT_GROUP}
    if pollers and known != settings.FACHO_POLLER_GROUPS:
        here, there = (",".join(f"{g}:{n}" for g, n in each.items()) for each in (settings.FACHO_POLLER_GROUPS, known))
        text = _(
            'FACHO_POLLER_GROUPS is "%(here)s" here and "%(there)s" for the leader: set the same value everywhere.'
        )
        yield warning("groups", text % {"here": here, "there": there})
    if not known:
        return
    lost = Olt.objects.exclude(poller_group__in=pollers).order_by("poller_group")
    for group, count in lost.values_list("poller_group").annotate(n=Count("id")):
        text = _("%(count)s OLTs use the poller group %(group)s, which has no pollers: add it to FACHO_POLLER_GROUPS.")
        yield error("groups", text % {"count": count, "group": group})


def _versions(processes: Sequence[ProductProcess]) -> DoctorFinding:
    others = [process for process in processes if process.version != VERSION]
    if others:
        shown = ", ".join(f"{process.owner} {process.version}" for process in others)
        text = _("This is %(version)s, others run at the same time: %(others)s. Finish the upgrade.")
        return warning("versions", text % {"version": VERSION, "others": shown})
    return ok("versions", _("%(version)s, in %(count)s processes") % {"version": VERSION, "count": len(processes)})


def _clocks(processes: Sequence[ProductProcess]) -> DoctorFinding:
    """Compare every process's clock with the database's, which all of them have in common."""
    ahead = {process.owner: process.clock_ahead.total_seconds() for process in processes}
    wrong = {owner: seconds for owner, seconds in ahead.items() if abs(seconds) > CLOCK_TOLERANCE.total_seconds()}
    if wrong:
        shown = ", ".join(f"{owner} {seconds:+.0f} s" for owner, seconds in wrong.items())
        text = _("These clocks differ from the database's: %s. Synchronise every machine by NTP.")
        return error("clocks", text % shown)
    most = max(map(abs, ahead.values()), default=0.0)
    return ok("clocks", _("differ by at most %s ms") % round(most * 1000))


def _queues(groups: Sequence[str], now: datetime) -> Iterator[DoctorFinding]:
    """Report the unread messages, and how long the oldest claim has been waiting for a worker."""
    names = [*(name for group in groups for name in queues_of(group)), BEAT_QUEUE]
    try:
        with Redis.from_url(settings.REDIS_URL, socket_timeout=REDIS_SECONDS) as redis:
            lengths = {name: int(redis.llen(name)) for name in names}
    except RedisError:
        # That it does not answer is a finding of its own.
        lengths = {}
    waits = load_longest_waits(now)
    for group in groups:
        age = waits.get(group, timedelta(0))
        shown = ", ".join(f"{name} {lengths.get(name, '?')}" for name in queues_of(group))
        words = {"queues": shown, "seconds": int(age.total_seconds())}
        if age > LONG_WAIT:
            text = _("%(queues)s; the oldest has waited for %(seconds)s s: restart the workers of this group.")
            yield error(_named("queues", group), text % words)
        else:
            yield ok(_named("queues", group), _("%(queues)s; the oldest has waited for %(seconds)s s") % words)
    if lengths.get(BEAT_QUEUE, 0) > MANY_BEATS:
        text = _("%s messages from beat are unread: start a worker on the queue zabbix_scheduler, or stop beat.")
        yield warning("beat", text % lengths[BEAT_QUEUE])


def _named(subject: str, group: str) -> str:
    return f"{subject}.{group}" if group else subject
