"""`facho backup` and `facho restore`: the whole embedded product in one file, and back."""

from argparse import Namespace
from gettext import gettext as _
from pathlib import Path

from facho.core.cli.arguments import Subparsers, add_command
from facho.core.cli.failure import CliError
from facho.core.cli.product import checked_environment, set_up_django


def register(subparsers: Subparsers) -> None:
    """Add `backup` and `restore`."""
    command = add_command(
        subparsers, "backup", _("write database and keys into one file, also while Facho runs"), write_backup
    )
    command.add_argument("file", metavar=_("FILE"), type=Path, help=_("a file that does not exist yet"))
    command = add_command(subparsers, "restore", _("put a backup into an empty data folder"), restore_backup)
    command.add_argument("file", metavar=_("FILE"), type=Path)


def write_backup(arguments: Namespace) -> int:
    """Back up what is there; a database that waits for an upgrade too."""
    checked_environment()
    set_up_django()
    database = _database_file(_("Use `pg_dump --format=custom --file=%(file)s %(database)s` and copy %(keys)s."))
    from django.conf import settings
    from django.utils import timezone

    from facho.core import backup

    try:
        backup.write_backup(arguments.file, database=database, folder=settings.DATA_FOLDER, now=timezone.now())
    except backup.BackupError as error:
        raise CliError(str(error)) from error
    print(_("%s holds everything, the keys too: keep it in a safe place") % arguments.file)
    return 0


def restore_backup(arguments: Namespace) -> int:
    """Restore while no engine runs on the folder."""
    checked_environment()
    set_up_django()
    database = _database_file(_("Use `pg_restore --dbname=%(database)s %(file)s` and copy %(keys)s."))
    from django.conf import settings

    from facho.core.backup import BackupError
    from facho.core.processes.engine import EngineRuns, engine_lock
    from facho.core.restore import restore_backup

    folder = settings.DATA_FOLDER
    try:
        folder.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        with engine_lock():
            restore_backup(arguments.file, database=database, folder=folder)
    except EngineRuns as error:
        raise CliError(_("Facho runs on %s: stop it first.") % folder.path) from error
    except BackupError as error:
        raise CliError(str(error)) from error
    except OSError as error:
        raise CliError(f"{error.filename or folder.path}: {error.strerror}") from error
    print(_("restored into %s; start it with `facho run`") % folder.path)
    return 0


def _database_file(otherwise: str) -> Path:
    """Return the SQLite file; a server has its own tools, and needs the keys as well."""
    from django.conf import settings

    entry, folder = settings.DATABASES["default"], settings.DATA_FOLDER
    if "sqlite" in entry["ENGINE"]:
        return Path(entry["NAME"])
    names = {
        "file": "facho.dump",
        "database": entry["NAME"],
        "keys": f"{folder.secret_key}, {folder.encryption_keys}",
    }
    raise CliError(_("The database is PostgreSQL.") + " " + otherwise % names)
