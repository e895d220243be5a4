"""Opens the product for a process: data folder, settings, Django, database. Every obstacle becomes one sentence."""

import logging
import os
import sys
from contextlib import suppress
from gettext import gettext as _
from importlib.metadata import version
from pathlib import Path
from typing import TextIO

import django
from django.conf import settings
from django.core.checks import CheckMessage
from django.db import Error
from django.db.migrations.recorder import MigrationRecorder
from django.utils import translation

from facho.core import database
from facho.core.checks import startup_errors, startup_warnings
from facho.core.data_folder import (
    DataFolder,
    DataFolderError,
    close_to_others,
    is_engine_alive,
    others_may_enter,
    prepare,
)
from facho.core.env import Environment, Mode, read_environment
from facho.core.security import JsonFormatter
from facho.infrastructure.statements import Select
from facho.infrastructure.storage import sqlite_file

MIGRATE = "facho migrate"
REDIS_SECONDS = 3.0
FAILED = 1
# EX_CONFIG of sysexits.h: until the operator changes something, starting again does not help.
BAD_CONFIGURATION = 78


class OperatorError(Exception):
    """An expected failure. Each line is a sentence for the operator and never holds a secret."""

    def __init__(self, *lines: str, status: int = FAILED) -> None:
        super().__init__(*lines)
        self.lines = lines
        self.status = status


def open_product() -> None:
    """Prepare the data folder and set Django up, without touching the database."""
    environment = checked_environment()
    try:
        prepare(DataFolder.of(environment), mode=environment["FACHO_MODE"])
    except DataFolderError as error:
        raise OperatorError(
            _("The data folder cannot be used: %s. Set FACHO_DATA_DIR to a folder that you may write.") % error,
            status=BAD_CONFIGURATION,
        ) from error
    set_up_django()
    report_closed()
    if errors := startup_errors():
        raise OperatorError(*map(_sentence, errors), status=BAD_CONFIGURATION)


def open_existing() -> None:
    """Open a product that has a database; where there is none, name the place and create nothing."""
    environment = checked_environment()
    set_up_django()
    file = sqlite_file()
    is_embedded = environment["FACHO_MODE"] is Mode.EMBEDDED and not settings.ENVIRONMENT_PROBLEMS
    if is_embedded and file is not None and not file.exists():
        folder = DataFolder.of(environment).path
        chosen = _("from FACHO_DATA_DIR") if os.environ.get("FACHO_DATA_DIR") else _("FACHO_DATA_DIR is not set")
        raise OperatorError(
            _("There is no database %(file)s; the data folder is %(folder)s (%(chosen)s).")
            % {"file": file, "folder": folder, "chosen": chosen},
            _("Nothing was created. Use the settings of the service; for a new product, run `facho run`."),
            status=BAD_CONFIGURATION,
        )
    open_product()


def open_distributed() -> None:
    """Refuse to start without what the distributed mode needs: there is no fallback."""
    open_product()
    if settings.FACHO_MODE is not Mode.DISTRIBUTED:
        raise OperatorError(
            _("This is part of the distributed product: set FACHO_MODE to distributed, or use `facho run`."),
            status=BAD_CONFIGURATION,
        )
    bring_up_to_date()
    # Its client takes half a second to import, which no command of the embedded product should wait for.
    from facho.core.redis import RedisFailure, ping

    try:
        ping(settings.REDIS_URL, timeout_seconds=REDIS_SECONDS)
    except RedisFailure as error:
        raise OperatorError(_("Redis does not answer: %s. Start it, or correct REDIS_URL.") % error) from error


def checked_environment() -> Environment:
    """Read the environment; a value that cannot be used stops here, before anything is created."""
    environment = read_environment(os.environ)
    if environment.problems:
        raise OperatorError(
            *(
                _("%(name)s has an invalid value: set it to %(expects)s.")
                % {"name": problem.name, "expects": _(problem.expects)}
                for problem in environment.problems
            ),
            status=BAD_CONFIGURATION,
        )
    return environment


def set_up_django() -> None:
    """Load settings and apps, log warnings of Python in the form of the log, and speak the configured language."""
    logging.captureWarnings(True)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "facho.core.settings")
    django.setup()
    translation.activate(settings.LANGUAGE_CODE)


def bring_up_to_date(*, holds_lock: bool = False) -> None:
    """Apply what is missing in embedded mode, and say how in distributed mode; add new default rules of alerts.

    The older version of a running product would read the new tables with its old code, so nothing is changed under it.
    """
    try:
        found = database.read_database_version()
        if found.halfway:
            raise OperatorError(
                between_versions(database.named(found.halfway)),
                _("Start the version that ran on it before: its backups and its data are not lost."),
                _(
                    "To move to this version, run `facho olt export` there and `facho olt import` here,"
                    " into a new database."
                ),
                status=BAD_CONFIGURATION,
            )
        if found.unknown:
            raise _too_new(database.named(found.unknown))
        if found.missing:
            if settings.FACHO_MODE is not Mode.EMBEDDED:
                text = _("The database lacks changes of this version (%(name)s): run `%(command)s`.")
                raise OperatorError(text % {"name": database.named(found.missing), "command": MIGRATE})
            if not holds_lock and is_engine_alive(settings.DATA_FOLDER):
                raise OperatorError(
                    _("Facho still runs with an older version on this database: stop or restart it, then try again.")
                )
            database.migrate()
        database.offer_rules()
    except Error as error:
        raise database_failure(error) from error


_APPLIED = Select(lambda: MigrationRecorder.Migration.objects.values_list("app", "name"))


def refuse_newer() -> None:
    """Raise when another process has migrated the database beyond this version; a database that is away passes."""
    # Whether there is such a table is not asked: without it the query fails, and this is asked every ten seconds.
    with suppress(Error):
        if unknown := database.compare(_APPLIED.rows()).unknown:
            raise _too_new(database.named(unknown))


def _too_new(migration: str) -> OperatorError:
    text = _("The database was made by a newer version of Facho (%(name)s), this is %(version)s: %(remedy)s.")
    remedy = _("start the newer version, or restore a backup")
    words = {"name": migration, "version": version("facho"), "remedy": remedy}
    return OperatorError(text % words, status=BAD_CONFIGURATION)


def between_versions(migration: str) -> str:
    """Report that this version has no migration path from this database."""
    text = _(
        "The database was left between two releases of Facho (%(name)s), and %(version)s cannot bring it up to date."
    )
    return text % {"name": migration, "version": version("facho")}


def database_failure(error: Exception) -> OperatorError:
    """Say the first line of what the database said; the lines after it may repeat values."""
    first = next(iter(str(error).splitlines()), type(error).__name__)
    return OperatorError(_("The database refused: %s. Run `facho doctor` for details.") % first.rstrip("."))


def report_closed() -> None:
    """Close folder and database to other users, and say what they could read until now."""
    for path in close_to_others(settings.DATA_FOLDER, Path(settings.DATABASES["default"]["NAME"])):
        text = _("Other users of this machine could read %s until now; it is closed to them.")
        say("facho: " + text % path)


def print_warnings() -> None:
    """Say on standard error what is odd about settings and folder; for a product that starts, once."""
    for warning in startup_warnings():
        say(f"facho: {_sentence(warning)}")
    folder: DataFolder = settings.DATA_FOLDER
    if others_may_enter(folder.path):
        text = _("Other users of this machine may enter %(path)s. Run: chmod 700 %(path)s")
        say("facho: " + text % {"path": folder.path})


def say(line: str, file: TextIO | None = None) -> None:
    """Print what a process says outside of its log, on standard error by default; as JSON where the log is JSON."""
    if read_environment(os.environ)["FACHO_LOG_FORMAT"] == "json":
        line = JsonFormatter().format(logging.LogRecord("facho", logging.INFO, "", 0, line, None, None))
    print(line, file=file or sys.stderr, flush=True)


def _sentence(message: CheckMessage) -> str:
    return f"{message.msg} {message.hint or ''}".strip()
