"""Why nothing is polled or stored: the reasons, their words, and which errors of a database are such reasons."""

import errno
import sqlite3
from collections.abc import Iterator
from enum import StrEnum
from typing import NamedTuple

from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

# SQLite keeps the primary code in the low byte.
_PRIMARY = 0xFF
_MAX_CHAIN = 10


class Standstill(StrEnum):
    """A reason why nothing is polled, or nothing of it stored."""

    DISK_FULL = "disk_full"
    READ_ONLY = "read_only"
    IO_ERROR = "io_error"
    DAMAGED = "damaged"
    UNREACHABLE = "unreachable"
    NO_LEADER = "no_leader"
    TICKS_FAIL = "ticks_fail"
    ENGINE_GONE = "engine_gone"


class StandstillWords(NamedTuple):
    """What happened, and what to do about it."""

    what: Promise
    remedy: Promise
    # What follows from it, for pages.
    title: Promise | str = _("Nothing is polled.")


WORDS: dict[Standstill, StandstillWords] = {
    Standstill.DISK_FULL: StandstillWords(
        _("The disk of the database is full."), _("Free some space; polling resumes by itself.")
    ),
    Standstill.READ_ONLY: StandstillWords(
        _("The database can be read, but not written."),
        _("Make its disk and files writable; polling resumes by itself."),
    ),
    Standstill.IO_ERROR: StandstillWords(
        _("The disk of the database reports errors."), _("Check the disk; the log of the kernel names it.")
    ),
    Standstill.DAMAGED: StandstillWords(
        _("The database is damaged."),
        _("Stop Facho, move the database away and restore the last backup: facho restore FILE"),
    ),
    Standstill.UNREACHABLE: StandstillWords(
        _("The database does not answer."), _("Start it; polling resumes by itself.")
    ),
    Standstill.NO_LEADER: StandstillWords(
        _("No scheduler leads."), _("Start `facho run`, or `facho scheduler` in the distributed mode.")
    ),
    Standstill.TICKS_FAIL: StandstillWords(
        _("The scheduler fails whenever it looks for due nodes."), _("Its log says why.")
    ),
    Standstill.ENGINE_GONE: StandstillWords(
        _("Its OLTs wait for it."), _("It is started again by itself; the log says why it ended.")
    ),
}


def words_of(reason: Standstill, engines: str = "") -> StandstillWords:
    """Return the words of a reason; `engines` names those of several that stand still while the others poll."""
    words = WORDS[reason]
    return (
        words._replace(title=gettext("Engine %(engines)s does not poll.") % {"engines": engines}) if engines else words
    )


_SQLITE = {
    sqlite3.SQLITE_FULL: Standstill.DISK_FULL,
    # No room for the index of the write-ahead log.
    sqlite3.SQLITE_IOERR_SHMSIZE: Standstill.DISK_FULL,
    sqlite3.SQLITE_READONLY: Standstill.READ_ONLY,
    sqlite3.SQLITE_IOERR: Standstill.IO_ERROR,
    sqlite3.SQLITE_CORRUPT: Standstill.DAMAGED,
    sqlite3.SQLITE_NOTADB: Standstill.DAMAGED,
    sqlite3.SQLITE_CANTOPEN: Standstill.UNREACHABLE,
}
_POSTGRESQL = {
    "53100": Standstill.DISK_FULL,
    "25006": Standstill.READ_ONLY,
    "58030": Standstill.IO_ERROR,
    "XX001": Standstill.DAMAGED,
    "XX002": Standstill.DAMAGED,
    "53300": Standstill.UNREACHABLE,
    "57P01": Standstill.UNREACHABLE,
    "57P02": Standstill.UNREACHABLE,
    "57P03": Standstill.UNREACHABLE,
}
_SYSTEM = {
    errno.ENOSPC: Standstill.DISK_FULL,
    errno.EDQUOT: Standstill.DISK_FULL,
    errno.EROFS: Standstill.READ_ONLY,
    errno.EIO: Standstill.IO_ERROR,
}


def standstill_of(error: BaseException | None) -> Standstill | None:
    """Recognise an error of the storage, also behind what was raised because of it; others are none."""
    return next(filter(None, map(_reason_of, _chain(error))), None)


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    for _turn in range(_MAX_CHAIN):
        if error is None:
            return
        yield error
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def _reason_of(error: BaseException) -> Standstill | None:
    code = getattr(error, "sqlite_errorcode", None)
    if isinstance(code, int):
        return _SQLITE.get(code) or _SQLITE.get(code & _PRIMARY)
    # Asked by its name: the embedded product does without the driver of PostgreSQL.
    if type(error).__module__.partition(".")[0] == "psycopg":
        state = getattr(error, "sqlstate", None)
        if state is None:
            # The driver's own: the connection was lost or never came about.
            is_connection = type(error).__name__ in ("OperationalError", "InterfaceError", "ConnectionTimeout")
            return Standstill.UNREACHABLE if is_connection else None
        return _POSTGRESQL.get(state) or (Standstill.UNREACHABLE if state.startswith("08") else None)
    return _SYSTEM.get(error.errno or 0) if isinstance(error, OSError) else None
