"""What a process knows of its storage: whether it works, a reserve for when the disk is full, and a short log.

The reserve is a file next to the SQLite database. When the disk is full it is deleted, and nothing new begins until
there is room to make it again: running work can still be stored, and the fault can still be reported.
"""

import asyncio
import errno
import logging
import os
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from django.conf import settings
from django.utils import translation

from facho.infrastructure.standstill import Standstill, standstill_of, words_of

logger = logging.getLogger(__name__)

# Several times the write-ahead log at its usual length, and the results of all pollers.
RESERVE_BYTES = 16 * 1024**2
# It is made again when as much is free besides: otherwise it would come and go with every write.
ROOM_BYTES = 2 * RESERVE_BYTES
# Less than this holds no result; the disk counts as full before a write fails.
FULL_BELOW_BYTES = 1024**2
LOOK_SECONDS = 1.0
# How long an unconfirmed error counts: several renewals of the lead, each of which would fail too.
NOTICED_SECONDS = 30.0
# A call that failed while another one released the reserve may be repeated as well.
RELEASED_SECONDS = 10.0
# A disk reads some gigabytes in that time.
CHECK_SECONDS = 60.0
CHECK_STEPS = 10_000
MAX_DAMAGE = 200
LOG_SECONDS = 60.0

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@dataclass(frozen=True, slots=True)
class Reserve:
    """Disk space that is kept in a file. Any process may release it; the engine makes it."""

    path: Path

    @property
    def is_held(self) -> bool:
        return self.path.exists()

    @property
    def free_bytes(self) -> int:
        disk = os.statvfs(self.path.parent)
        return (disk.f_bavail if os.geteuid() else disk.f_bfree) * disk.f_frsize

    def make(self) -> bool:
        """Take the space; False if there is not enough. It appears whole or not at all."""
        if self.free_bytes < ROOM_BYTES:
            return False
        unfinished = self.path.with_name(f"{self.path.name}.new")
        try:
            descriptor = os.open(unfinished, os.O_CREAT | os.O_RDWR | os.O_TRUNC, 0o600)
            try:
                os.posix_fallocate(descriptor, 0, ROOM_BYTES)
                os.ftruncate(descriptor, RESERVE_BYTES)
            finally:
                os.close(descriptor)
            unfinished.rename(self.path)
        except OSError as error:
            with suppress(OSError):
                unfinished.unlink()
            if error.errno in _NO_ROOM:
                return False
            raise
        return True

    def release(self) -> bool:
        try:
            self.path.unlink()
        except OSError:
            return False
        return True


class Storage:
    """Remembers what went wrong with the storage, in this process or by the missing reserve."""

    def __init__(self, reserve: Reserve | None, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._reserve = reserve
        self._monotonic = monotonic
        self._noticed: tuple[Standstill, float] | None = None
        self._released_at: float | None = None
        self._is_room_refused = False
        self._is_damaged = False
        self._is_check_wanted = True
        self._logged: Standstill | None = None

    @property
    def trouble(self) -> Standstill | None:
        """What keeps results from being stored now."""
        if self._is_damaged:
            return Standstill.DAMAGED
        if self._is_full():
            return Standstill.DISK_FULL
        if self._noticed and self._monotonic() - self._noticed[1] < NOTICED_SECONDS:
            return self._noticed[0]
        return None

    @property
    def holds(self) -> bool:
        """Whether nothing new may begin: the reserve is in use, or a write would damage the database further."""
        return self._is_damaged or self._is_full()

    @property
    def has_reserve(self) -> bool:
        """Whether a look touches the disk."""
        return self._reserve is not None

    def notice(self, error: BaseException) -> Standstill | None:
        """Remember a storage error; ignore other errors."""
        reason = standstill_of(error)
        if reason is Standstill.DAMAGED:
            self._is_damaged = True
        elif reason is not None:
            self._noticed = (reason, self._monotonic())
        return reason

    def forget(self) -> None:
        """Clear the noticed error after a successful write. Damage stays."""
        self._noticed = None

    def make_room(self, error: BaseException) -> bool:
        """Record an error; return whether the call is worth a repeat because the reserve has been released."""
        if self.notice(error) is not Standstill.DISK_FULL or self._reserve is None:
            return False
        if self._reserve.release():
            self._released_at = self._monotonic()
        return self._released_at is not None and self._monotonic() - self._released_at < RELEASED_SECONDS

    def look(self) -> None:
        """Release the reserve when the disk is full, and make it again when there is room; for the engine alone."""
        if self._reserve is not None:
            reserve = self._reserve
            try:
                if reserve.is_held:
                    if reserve.free_bytes < FULL_BELOW_BYTES and reserve.release():
                        self._released_at = self._monotonic()
                else:
                    self._is_room_refused = not reserve.make()
                    if not self._is_room_refused:
                        # What failed for want of room is over.
                        self._noticed = None
            except OSError as error:
                # A folder that cannot be written: the database says so itself.
                self._is_room_refused = False
                self.notice(error)
        trouble = self.trouble
        if trouble is not self._logged:
            self._logged = trouble
            if trouble is None:
                logger.warning("storage.works_again")
            else:
                logger.error("storage.trouble why=%s held=%s: %s", trouble, self.holds, in_english(trouble))

    def check(self, database: Path | None) -> None:
        """Look for damage once, as after a power cut; a server looks after its own files."""
        if database is None:
            return
        damage = find_damage(database, seconds=CHECK_SECONDS, is_wanted=lambda: self._is_check_wanted)
        if damage:
            self._is_damaged = True
            logger.error("database.damaged file=%s found=%s", database, damage)

    def stop_checking(self) -> None:
        """Abort a check whose answer is no longer needed."""
        self._is_check_wanted = False

    def _is_full(self) -> bool:
        if self._reserve is None or self._reserve.is_held:
            return False
        try:
            return self._is_room_refused or self._reserve.free_bytes < ROOM_BYTES
        except OSError:
            return False


def open_storage() -> Storage:
    """Describe the storage of this process: a server keeps its own disk, a SQLite file gets a reserve next to it."""
    database = sqlite_file()
    return Storage(Reserve(database.with_name("disk-reserve")) if database else None)


def sqlite_file() -> Path | None:
    entry = settings.DATABASES["default"]
    return Path(entry["NAME"]) if "sqlite" in entry["ENGINE"] else None


async def watch_storage(storage: Storage) -> None:
    """Check repeatedly; off the event loop, since a failing disk blocks the caller."""
    while True:
        if storage.has_reserve:
            await asyncio.to_thread(storage.look)
        else:
            storage.look()
        await asyncio.sleep(LOOK_SECONDS)


def find_damage(database: Path, *, seconds: float, is_wanted: Callable[[], bool] = lambda: True) -> str | None:
    """Run SQLite's quick check: nothing when the file is sound, None when the time was too short to say so."""
    give_up_at = time.monotonic() + seconds
    uri = f"file:{quote(str(database.absolute()))}?mode=ro"
    try:
        with closing(sqlite3.connect(uri, uri=True)) as reader:
            reader.set_progress_handler(lambda: time.monotonic() > give_up_at or not is_wanted(), CHECK_STEPS)
            [found] = reader.execute("PRAGMA quick_check(1)").fetchone()
    except sqlite3.Error as error:
        return str(error) if standstill_of(error) is Standstill.DAMAGED else None
    return "" if found == "ok" else " ".join(str(found).split())[:MAX_DAMAGE]


def in_english(reason: Standstill, engines: str = "") -> str:
    """Say a reason and its remedy in a language that programs and logs have in common."""
    with translation.override(None):
        words = words_of(reason, engines)
        return f"{words.title} {words.what} {words.remedy}" if engines else f"{words.what} {words.remedy}"


class BriefStorageErrors(logging.Filter):
    """Logs errors of the storage in one line, and again at most once a minute with their number, without tracebacks."""

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.Lock()
        self._logged_at: dict[Standstill, float] = {}
        self._held_back: dict[Standstill, int] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        reason = standstill_of(record.exc_info[1]) if record.exc_info else None
        if reason is None:
            # Our own answers to such errors, and of readiness, are already reported here.
            return getattr(record, "status_code", None) != 503
        count = self._count(reason)
        if not count:
            return False
        # Name what failed as its own line would have: its first word.
        event_of = next(iter(str(record.msg).split()), record.name) if record.name.startswith("facho") else record.name
        record.msg, record.args = (
            "storage.failed why=%s at=%s count=%s: %s",
            (reason, event_of, count, in_english(reason)),
        )
        record.exc_info = record.exc_text = record.stack_info = None
        return True

    def _count(self, reason: Standstill) -> int:
        """Return for how many errors the line stands; 0 when it is too early for one."""
        now = time.monotonic()
        with self._lock:
            held_back = self._held_back.get(reason, 0) + 1
            logged_at = self._logged_at.get(reason)
            if logged_at is not None and now - logged_at < LOG_SECONDS:
                self._held_back[reason] = held_back
                return 0
            self._logged_at[reason], self._held_back[reason] = now, 0
            return held_back
