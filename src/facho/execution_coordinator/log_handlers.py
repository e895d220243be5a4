"""Where the coordinator's log goes: a table to ask and a file to read. Neither needs the other.

Logging is set up before the models are, so they are looked up when a line is written.
"""

import logging
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path

from django.apps import apps
from django.db import Error, transaction

logger = logging.getLogger(__name__)

# A value of an event; runs that it ended are a list of their values.
Value = str | int | list[dict[str, str | int]]

# Our longest names and reasons are shorter.
MAX_VALUE = 200


@dataclass(slots=True)
class Entry:
    """The message of a log record: what the table keeps, and as text what the file does."""

    event_type: str
    sentence: str
    details: dict[str, Value]
    olt_id: int | None
    # Filled by the table, which reads the database.
    olt_name: str = ""
    # It is in the table already: only the file is left to write.
    is_stored: bool = False

    def __str__(self) -> str:
        name = one_line(self.olt_name) or f"OLT {self.olt_id}"
        return self.sentence if self.olt_id is None or name in self.sentence else f"{self.sentence} ({name})"


def one_line(value: object) -> str:
    """Write a value on one line of bounded length, without control characters."""
    text = str(value)
    if len(text) > MAX_VALUE:
        text = f"{text[: MAX_VALUE - 1]}…"
    if not text.isprintable():
        text = "".join(letter if letter.isprintable() else " " for letter in text)
    return text.strip()


class _ReportsOnce(logging.Handler):
    """Reports in the ordinary log that writing fails, once until a line is written again."""

    _has_failed = False
    _is_reported = False

    def emit(self, record: logging.LogRecord) -> None:
        """Write the record; a failure does not stop the caller."""
        self._has_failed = False
        self.write(record)
        self._is_reported = self._has_failed

    def write(self, record: logging.LogRecord) -> None:
        """Write the record, or call `handleError` while the error is being handled."""
        raise NotImplementedError

    def handleError(self, record: logging.LogRecord) -> None:
        """Report the error being handled, unless the last record failed too."""
        self._has_failed = True
        if not self._is_reported:
            logger.error("coordinator.log_failed to=%s error=%s", self.name, one_line(sys.exception()))


class LogTable(_ReportsOnce):
    """Writes rows, in savepoints: a row that fails leaves the caller's transaction as it was."""

    def handle(self, record: logging.LogRecord) -> bool:
        """Write without a lock: a thread that waits for a row must not stop the one that holds the row."""
        self.emit(record)
        return True

    def write(self, record: logging.LogRecord) -> None:
        entry: object = record.msg
        if not isinstance(entry, Entry) or entry.is_stored:
            return
        try:
            with transaction.atomic():
                if entry.olt_id is not None:
                    olts = apps.get_model("hosts.Olt")._default_manager.filter(id=entry.olt_id)
                    entry.olt_name = olts.values_list("name", flat=True).first() or ""
                    # It was deleted with its rows; a new row would fail the transaction at its very end.
                    if not entry.olt_name:
                        return
                apps.get_model("execution_coordinator.CoordinatorLog")._default_manager.create(
                    olt_id=entry.olt_id,
                    event_type=entry.event_type,
                    level=record.levelname,
                    message=entry.sentence,
                    details=entry.details,
                    timestamp=datetime.fromtimestamp(record.created, UTC),
                )
        except Error:
            self.handleError(record)


class LogFile(_ReportsOnce, RotatingFileHandler):
    """Writes lines; the folder is made when there is the first one to write."""

    def write(self, record: logging.LogRecord) -> None:
        RotatingFileHandler.emit(self, record)

    def _open(self) -> TextIOWrapper:
        Path(self.baseFilename).parent.mkdir(parents=True, exist_ok=True)
        return super()._open()
