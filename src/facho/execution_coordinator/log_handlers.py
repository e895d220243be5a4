"""Where the coordinator's log goes: a table to ask and a file to read. Neither needs the other.

Logging is set up before the models are, so they are looked up when a line is written.
"""

import logging
import sys
from datetime import UTC, datetime
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path

from django.apps import apps
from django.db import Error, transaction

from facho.execution_coordinator.log_entry import Entry, one_line

logger = logging.getLogger(__name__)


class _TellsOnce(logging.Handler):
    """Tells in the ordinary log that writing fails, once until a line gets through again."""

    _has_failed = False
    _is_told = False

    def emit(self, record: logging.LogRecord) -> None:
        """Write the record; whatever comes of it, the caller goes on."""
        self._has_failed = False
        self.write(record)
        self._is_told = self._has_failed

    def write(self, record: logging.LogRecord) -> None:
        """Write the record, or call `handleError` while the error is being handled."""
        raise NotImplementedError

    def handleError(self, record: logging.LogRecord) -> None:
        """Take note of the error being handled."""
        self._has_failed = True
        if not self._is_told:
            logger.error("coordinator.log_failed to=%s error=%s", self.name, one_line(sys.exception()))


class LogTable(_TellsOnce):
    """Writes rows, in savepoints: a row that fails leaves the caller's transaction as it was."""

    def handle(self, record: logging.LogRecord) -> bool:
        """Write without a lock: a thread that waits for a row must not stop the one that holds the row."""
        self.emit(record)
        return True

    def write(self, record: logging.LogRecord) -> None:
        """Add the record's row."""
        try:
            with transaction.atomic():
                _add_row(record)
        except Error:
            self.handleError(record)


class LogFile(_TellsOnce, RotatingFileHandler):
    """Writes lines; the folder is made when there is the first one to write."""

    def write(self, record: logging.LogRecord) -> None:
        """Add the record's line."""
        RotatingFileHandler.emit(self, record)

    def _open(self) -> TextIOWrapper:
        Path(self.baseFilename).parent.mkdir(parents=True, exist_ok=True)
        return super()._open()


def _add_row(record: logging.LogRecord) -> None:
    entry: object = record.msg
    if not isinstance(entry, Entry):
        return
    if entry.olt_id is not None:
        olts = apps.get_model("hosts.Olt")._default_manager.filter(id=entry.olt_id)
        entry.olt_name = olts.values_list("name", flat=True).first() or ""
        # It was deleted meanwhile and its rows with it; another one would fail the transaction at its very end.
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
