"""Examines an installation part by part; each finding says what is wrong and what to do."""

import os
import shutil
import stat
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from django.conf import settings
from django.core.checks import CheckMessage, run_checks
from django.db import Error, connection
from django.db.migrations.recorder import MigrationRecorder
from django.db.models import Max
from django.utils.translation import gettext as _

from facho.core.checks import TAG
from facho.core.cli.product import MIGRATE
from facho.core.data_folder import DataFolder
from facho.core.database_version import named, read_database_version
from facho.core.env import Mode
from facho.core.findings import Finding, Verdict
from facho.core.findings import error as _error
from facho.core.findings import ok as _ok
from facho.core.findings import warning as _warning
from facho.core.new_file import find_abandoned
from facho.core.processes.engine import is_engine_alive
from facho.core.redis_ping import RedisFailure, ping
from facho.hosts.models import Olt
from facho.hosts.secrets import UndecryptableSecret
from facho.polling.domain.clock import CLOCK_TOLERANCE
from facho.zabbix_pollers.models import LeaderLease

LITTLE_DISK_BYTES = 1024**3
NO_DISK_BYTES = 100 * 1024**2
# Nobody's clock was right and showed less when this was written.
EARLIEST_NOW = datetime(2025, 1, 1, tzinfo=UTC)
REDIS_SECONDS = 3.0


def examine(now: datetime) -> Iterator[Finding]:
    """Look at everything; creates and changes nothing."""
    folder: DataFolder = settings.DATA_FOLDER
    if _is_closed(folder.path):
        text = _("%s is not accessible for this user: run it as the owner of the folder.")
        yield _error("data-folder", text % folder.path)
        return
    yield from _settings()
    yield _data_folder(folder.path)
    yield from _unfinished(folder)
    yield _disk(folder.path)
    if _has_database():
        try:
            yield from _database(now)
        except Error as error:
            yield _error("database", next(iter(str(error).splitlines()), type(error).__name__))
    else:
        yield _no_database(folder.path)
    if settings.FACHO_MODE is Mode.DISTRIBUTED:
        yield _redis()


def _settings() -> Iterator[Finding]:
    messages = run_checks(tags=[TAG])
    if not messages:
        yield _ok("settings", _("mode %s") % settings.FACHO_MODE)
    yield from (_of_check(message) for message in messages)


def _of_check(message: CheckMessage) -> Finding:
    verdict = Verdict.ERROR if message.is_serious() else Verdict.WARNING
    return Finding(verdict, "settings", f"{message.msg} {message.hint or ''}".strip())


def _is_closed(path: Path) -> bool:
    """Tell whether this user may not even look: nothing could be said about what lies inside."""
    try:
        return path.is_dir() and not os.access(path, os.R_OK | os.X_OK)
    except PermissionError:
        return True


def _data_folder(path: Path) -> Finding:
    if not path.exists():
        return _warning("data-folder", _("%s does not exist yet: `facho run` creates it.") % path)
    if not path.is_dir() or not os.access(path, os.R_OK | os.W_OK | os.X_OK):
        return _error("data-folder", _("%s is not a folder that this user may write: set FACHO_DATA_DIR.") % path)
    if path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        return _warning("data-folder", _("Other users may enter it; run: chmod 700 %s") % path)
    return _ok("data-folder", str(path))


def _unfinished(folder: DataFolder) -> Iterator[Finding]:
    text = _("A backup, a restore or a first start that was killed left it, perhaps with secrets; run: rm -r %s")
    for place in sorted({folder.path, folder.secret_key.parent, folder.encryption_keys.parent}):
        yield from (_warning("unfinished", text % left) for left in find_abandoned(place))


def _disk(path: Path) -> Finding:
    existing = next(folder for folder in (path, *path.parents) if folder.exists())
    free = shutil.disk_usage(existing).free
    text = _("%s MiB free") % (free // 1024**2)
    if free < NO_DISK_BYTES:
        return _error("disk", _("%s: make room, or writing stops.") % text)
    return _warning("disk", _("%s: make room soon.") % text) if free < LITTLE_DISK_BYTES else _ok("disk", text)


def _has_database() -> bool:
    """Keep from creating an empty SQLite file by looking at it."""
    entry = connection.settings_dict
    return "sqlite" not in entry["ENGINE"] or Path(entry["NAME"]).exists()


def _no_database(data_folder: Path) -> Finding:
    """Tell a first start, which creates the file, from a path where nothing can be created."""
    parent = Path(connection.settings_dict["NAME"]).parent
    if parent != data_folder and not parent.is_dir():
        return _error("database", _("There is no folder %s for it: make one, or correct DATABASE_URL.") % parent)
    return _warning("database", _("There is none yet: `facho run` creates it."))


def _database(now: datetime) -> Iterator[Finding]:
    connection.ensure_connection()
    yield _ok("database", connection.vendor)
    version = read_database_version()
    if version.unknown:
        text = _("The database was made by a newer version of Facho (%s): install that version.")
        yield _error("migrations", text % named(version.unknown))
        return
    if version.missing:
        yield _missing_migrations(named(version.missing))
        return
    yield _ok("migrations", _("all applied"))
    yield _credentials()
    yield from _engine(now)
    if settings.FACHO_MODE is Mode.DISTRIBUTED:
        # It needs the client of Redis, which takes its time to import.
        from facho.core.doctor_cluster import examine_cluster

        yield from examine_cluster(now)
    yield _clock(now)


def _missing_migrations(name: str) -> Finding:
    if settings.FACHO_MODE is Mode.EMBEDDED:
        return _warning("migrations", _("%s is not applied: `facho run` does it.") % name)
    text = _("%(name)s is not applied: run `%(command)s`.")
    return _error("migrations", text % {"name": name, "command": MIGRATE})


def _credentials() -> Finding:
    try:
        # Reading decrypts.
        count = len(Olt.objects.values_list("community", "v3_auth_key", "v3_priv_key"))
    except UndecryptableSecret as error:
        return _error("credentials", str(error))
    return _ok("credentials", _("of %s OLTs, all readable") % count)


def _engine(now: datetime) -> Iterator[Finding]:
    """Look for the engine of this folder, or for whoever leads on other machines."""
    is_embedded = settings.FACHO_MODE is Mode.EMBEDDED
    if is_embedded and not is_engine_alive():
        yield _warning("engine", _("It is not running, so nothing is polled: start it with `facho run`."))
        return
    if is_embedded:
        yield _ok("engine", _("running"))
    yield _leader(now, start=_("restart Facho") if is_embedded else _("start `facho scheduler`"))


def _leader(now: datetime, *, start: str) -> Finding:
    lease = LeaderLease.objects.order_by("-renewed_at").first()
    if lease is None:
        return _warning("leader", _("No scheduler has led yet: wait a minute, or %s.") % start)
    age = now - lease.renewed_at
    if age > timedelta(seconds=settings.FACHO_LEASE_SECONDS):
        return _error(
            "leader",
            _("No scheduler has led for %(age)s s: %(start)s.") % {"age": int(age.total_seconds()), "start": start},
        )
    return _ok("leader", lease.owner)


def _clock(now: datetime) -> Finding:
    if now < EARLIEST_NOW:
        return _error("clock", _("It shows %s: set the clock of this machine.") % f"{now:%Y-%m-%d}")
    ahead = max(_times_seen(), default=now) - now
    if ahead > CLOCK_TOLERANCE:
        text = _("It is %s s behind what the database has seen: set the clock of every machine by NTP.")
        return _error("clock", text % int(ahead.total_seconds()))
    return _ok("clock", now.isoformat(timespec="seconds"))


def _times_seen() -> list[datetime]:
    """Collect moments that are certainly past: stored ones, and the server's own now."""
    applied = MigrationRecorder.Migration.objects.aggregate(latest=Max("applied"))["latest"]
    renewed = LeaderLease.objects.aggregate(latest=Max("renewed_at"))["latest"]
    return [moment for moment in (applied, renewed, _server_now()) if moment is not None]


def _server_now() -> datetime | None:
    if connection.vendor != "postgresql":
        return None
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        moment: datetime = cursor.fetchone()[0]
        return moment


def _redis() -> Finding:
    try:
        ping(settings.REDIS_URL, timeout_seconds=REDIS_SECONDS)
    except RedisFailure as error:
        return _error("redis", _("%s: start it, or correct REDIS_URL.") % error)
    return _ok("redis", _("answers"))
