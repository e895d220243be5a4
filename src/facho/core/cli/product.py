"""Opens the product for a command: data folder, settings, Django, database. Every obstacle becomes one sentence."""

import os
import sys
from argparse import Namespace
from collections.abc import Callable
from functools import wraps
from gettext import gettext as _
from typing import TYPE_CHECKING

from facho.core.cli.failure import CliError
from facho.core.data_folder import DataFolder, DataFolderError, prepare
from facho.core.env import Environment, read_environment

if TYPE_CHECKING:
    from django.core.checks import CheckMessage

MIGRATE = "django-admin migrate --settings facho.core.settings"

Handler = Callable[[Namespace], int]


def database_command(handler: Handler) -> Handler:
    """Run a command on an up-to-date database; what the database says against it becomes one sentence."""

    @wraps(handler)
    def run(arguments: Namespace) -> int:
        open_product()
        _keep_log_quiet()
        bring_up_to_date()
        from django.db import Error

        from facho.hosts.secrets import UndecryptableSecret

        try:
            return handler(arguments)
        except Error as error:
            raise _database_failure(error) from error
        except UndecryptableSecret as error:
            raise CliError(str(error)) from error

    return run


def open_product() -> None:
    """Prepare the data folder and set Django up, without touching the database."""
    environment = checked_environment()
    try:
        prepare(DataFolder.of(environment), mode=environment["FACHO_MODE"])
    except DataFolderError as error:
        raise CliError(
            _("The data folder cannot be used: %s. Set FACHO_DATA_DIR to a folder that you may write.") % error
        ) from error
    set_up_django()
    _refuse_startup_errors()


def tell_warnings() -> None:
    """Say on standard error what is odd about the settings; for a product that starts, once."""
    from facho.core.checks import startup_warnings

    for warning in startup_warnings():
        print(f"facho: {_sentence(warning)}", file=sys.stderr)


def checked_environment() -> Environment:
    """Read the environment; a value that cannot be used stops here, before anything is created."""
    environment = read_environment(os.environ)
    if environment.problems:
        raise CliError(
            *(
                _("%(name)s has a value that cannot be used: set it to %(expects)s.")
                % {"name": problem.name, "expects": _(problem.expects)}
                for problem in environment.problems
            )
        )
    return environment


def set_up_django() -> None:
    """Load settings and apps, and speak the configured language."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "facho.core.settings")
    import django
    from django.conf import settings
    from django.utils import translation

    django.setup()
    translation.activate(settings.LANGUAGE_CODE)


def bring_up_to_date() -> None:
    """Refuse a newer database; apply what is missing in embedded mode, and say how in distributed mode."""
    from django.db import Error

    from facho.core.database_version import MissingMigrations, NewerDatabase, ensure_current

    try:
        ensure_current()
    except Error as error:
        raise _database_failure(error) from error
    except NewerDatabase as error:
        raise CliError(
            _("The database was made by a newer version of Facho (%s): install that version, or restore a backup.")
            % error
        ) from error
    except MissingMigrations as error:
        raise CliError(
            _("The database lacks changes of this version (%(name)s): run `%(command)s`.")
            % {"name": error, "command": MIGRATE}
        ) from error


def _database_failure(error: Exception) -> CliError:
    """Say the first line of what the database said; the lines after it may repeat values."""
    first = next(iter(str(error).splitlines()), type(error).__name__)
    return CliError(_("The database refused: %s. `facho doctor` tells more.") % first.rstrip("."))


def _keep_log_quiet() -> None:
    """Leave standard error to the command's own words; who asks for DEBUG gets everything."""
    import logging

    from django.conf import settings

    if settings.ENVIRONMENT["FACHO_LOG_LEVEL"] != "DEBUG":
        logging.getLogger("facho").setLevel(logging.WARNING)


def _refuse_startup_errors() -> None:
    from facho.core.checks import startup_errors

    errors = startup_errors()
    if errors:
        raise CliError(*map(_sentence, errors))


def _sentence(message: "CheckMessage") -> str:
    return f"{message.msg} {message.hint or ''}".strip()
