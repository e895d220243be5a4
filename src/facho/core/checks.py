"""System checks of the configuration: each has an id and a hint that says what to do."""

import difflib
import os
from pathlib import Path
from typing import Any

from cryptography.fernet import Fernet
from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning, register, run_checks
from django.utils.translation import gettext as _

from facho.core.data_folder import DataFolder, others_may_enter
from facho.core.env import SETTINGS, Mode
from facho.polling.vendors.loader import load_definitions
from facho.polling.vendors.schema import DefinitionError

TAG = "facho"


def startup_errors() -> list[CheckMessage]:
    return [message for message in run_checks(tags=[TAG]) if message.is_serious()]


def startup_warnings() -> list[CheckMessage]:
    """List what hinders no start, but is hardly what the operator meant."""
    return [message for message in run_checks(tags=[TAG]) if not message.is_serious()]


def register_checks() -> None:
    """Make the checks part of `manage.py check`, of `facho doctor` and of every start."""
    for check in (
        check_environment,
        check_distributed_mode,
        check_engines,
        check_secrets,
        check_definitions,
        check_secrecy,
        check_history_ages,
        check_sign_on,
        check_netbox,
    ):
        register(check, TAG)


def check_environment(**_options: Any) -> list[CheckMessage]:
    """E001 for a value that cannot be read, W001 for a name that no setting has."""
    messages: list[CheckMessage] = [
        Error(
            _("%(name)s has an invalid value.") % {"name": problem.name},
            hint=_("Set it to %(expects)s, or unset it; see docs/configuration.md.") % {"expects": _(problem.expects)},
            id="facho.E001",
        )
        for problem in settings.ENVIRONMENT_PROBLEMS
    ]
    for name in settings.ENVIRONMENT.unknown_names:
        similar = difflib.get_close_matches(name, [setting.name for setting in SETTINGS], n=1)
        did_you_mean = _("Did you mean %(name)s?") % {"name": similar[0]} if similar else ""
        hint = did_you_mean or _("docs/configuration.md lists them all.")
        messages.append(Warning(_("There is no setting %(name)s.") % {"name": name}, hint=hint, id="facho.W001"))
    return messages


def check_distributed_mode(**_options: Any) -> list[CheckMessage]:
    """E002 and E003: what several machines share has to be named."""
    messages: list[CheckMessage] = []
    if settings.FACHO_MODE is not Mode.DISTRIBUTED:
        return messages
    if "postgresql" not in settings.DATABASES["default"]["ENGINE"]:
        messages.append(
            Error(
                _("The distributed mode needs a PostgreSQL database."),
                hint=_("Set DATABASE_URL to postgresql://USER:PASSWORD@HOST:PORT/NAME, or FACHO_MODE to embedded."),
                id="facho.E002",
            )
        )
    if not settings.REDIS_URL:
        messages.append(
            Error(
                _("The distributed mode needs Redis."),
                hint=_("Set REDIS_URL to redis://HOST:PORT/NUMBER, or FACHO_MODE to embedded."),
                id="facho.E003",
            )
        )
    return messages


def check_engines(**_options: Any) -> list[CheckMessage]:
    """E008 and E009: several engines need a database with several writers, and each of them a poller."""
    wanted: int = settings.ENVIRONMENT["FACHO_ENGINES"] or 1
    if wanted > 1 and "postgresql" not in settings.DATABASES["default"]["ENGINE"]:
        return [
            Error(
                _("Several engines need a PostgreSQL database: SQLite lets one process write at a time."),
                hint=_("Unset FACHO_ENGINES, or set DATABASE_URL to postgresql://USER:PASSWORD@HOST:PORT/NAME."),
                id="facho.E008",
            )
        ]
    if settings.FACHO_MODE is Mode.EMBEDDED and wanted > settings.FACHO_POLLERS:
        return [
            Error(
                _("%(engines)s engines cannot share %(pollers)s pollers: each needs one.")
                % {"engines": wanted, "pollers": settings.FACHO_POLLERS},
                hint=_("Set FACHO_ENGINES to at most the number of FACHO_POLLERS, or unset it."),
                id="facho.E009",
            )
        ]
    return []


def check_secrets(**_options: Any) -> list[CheckMessage]:
    """E004 and E005: without its keys the product neither signs a session nor reads a community."""
    folder: DataFolder = settings.DATA_FOLDER
    messages: list[CheckMessage] = []
    if not folder.read_secret_key():
        messages.append(_no_key("facho.E004", _("There is no secret key in %(path)s."), folder.secret_key))
    keys = folder.read_encryption_keys()
    if not keys or not all(_is_fernet_key(key) for key in keys):
        text = _("There is no valid encryption key in %(path)s.")
        messages.append(_no_key("facho.E005", text, folder.encryption_keys))
    return messages


def check_definitions(**_options: Any) -> list[CheckMessage]:
    """E006: a vendor definition of the operator's own that cannot be used, by file and key."""
    try:
        load_definitions()
    except DefinitionError as error:
        return [
            Error(
                _("A vendor definition cannot be used: %(error)s") % {"error": error},
                hint=_("Correct or remove the file in %(folder)s; docs/vendors.md describes definitions.")
                % {"folder": settings.DATA_FOLDER.definitions},
                id="facho.E006",
            )
        ]
    return []


def check_sign_on(**_options: Any) -> list[CheckMessage]:
    """E010 and E011: a provider or directory that is half described; E012: a file of it that cannot be read."""
    text = _("Sign-on needs %(name)s.")
    see = _("Set it, or unset %(first)s; docs/sign-on.md has an example for each provider.")
    needs = {
        "FACHO_OIDC_ISSUER": ("facho.E010", ["FACHO_OIDC_CLIENT_ID", "FACHO_SIGN_ON_ROLES"]),
        "FACHO_LDAP_URL": ("facho.E011", ["FACHO_LDAP_USER_BASE", "FACHO_SIGN_ON_ROLES"]),
    }
    messages: list[CheckMessage] = [
        Error(text % {"name": name}, hint=see % {"first": first}, id=code)
        for first, (code, names) in needs.items()
        for name in names
        if getattr(settings, first) and not getattr(settings, name)
    ]
    return [*messages, *_unreadable(*_sign_on_secrets(), settings.FACHO_LDAP_CA_FILE)]


def _sign_on_secrets() -> tuple[Path | None, ...]:
    return settings.FACHO_OIDC_CLIENT_SECRET_FILE, settings.FACHO_LDAP_BIND_PASSWORD_FILE


def check_netbox(**_options: Any) -> list[CheckMessage]:
    """E013: NetBox answers nobody without a token; E012: a file of it that cannot be read."""
    messages: list[CheckMessage] = []
    if settings.FACHO_NETBOX_URL and not settings.FACHO_NETBOX_TOKEN_FILE:
        messages.append(
            Error(
                _("NetBox needs FACHO_NETBOX_TOKEN_FILE."),
                hint=_("Set it, or unset FACHO_NETBOX_URL; see docs/neighbours.md."),
                id="facho.E013",
            )
        )
    return [*messages, *_unreadable(*_netbox_secrets())]


def _netbox_secrets() -> tuple[Path | None, ...]:
    return settings.FACHO_NETBOX_TOKEN_FILE, settings.FACHO_NETBOX_CREDENTIALS_FILE


def _unreadable(*paths: Path | None) -> list[CheckMessage]:
    return [
        Error(
            _("The file %(path)s cannot be read.") % {"path": path},
            hint=_("Make it readable for this user, or correct the setting that names it."),
            id="facho.E012",
        )
        for path in paths
        if path is not None and not os.access(path, os.R_OK)
    ]


def check_secrecy(**_options: Any) -> list[CheckMessage]:
    """W002: a key that others on this machine may read protects little."""
    folder: DataFolder = settings.DATA_FOLDER
    kept = (folder.secret_key, folder.encryption_keys, *filter(None, (*_sign_on_secrets(), *_netbox_secrets())))
    exposed = (path for path in kept if others_may_enter(path))
    return [
        Warning(
            _("Other users of this machine may read %(path)s.") % {"path": path},
            hint=_("Run: chmod 600 %(path)s") % {"path": path},
            id="facho.W002",
        )
        for path in exposed
    ]


def check_history_ages(**_options: Any) -> list[CheckMessage]:
    """E007: each form of the history is made of the one before, so it cannot end earlier."""
    ages = (settings.FACHO_HISTORY_DAYS, settings.FACHO_HISTORY_HOURLY_DAYS, settings.FACHO_HISTORY_DAILY_DAYS)
    if list(ages) == sorted(ages):
        return []
    return [
        Error(
            _("The ages of the history descend: %(ages)s days.") % {"ages": ", ".join(map(str, ages))},
            hint=_(
                "Set FACHO_HISTORY_DAYS, FACHO_HISTORY_HOURLY_DAYS and FACHO_HISTORY_DAILY_DAYS so that they ascend."
            ),
            id="facho.E007",
        )
    ]


def _no_key(check_id: str, text: str, path: Path) -> CheckMessage:
    if settings.FACHO_MODE is Mode.DISTRIBUTED:
        hint = _("Copy the same file to every machine; docs/configuration.md shows how to make one.")
    elif path.exists():
        hint = _("Restore the file from a backup: a new key cannot read what the old one wrote.")
    else:
        hint = _("Start `facho run` once: it generates what is missing.")
    return Error(text % {"path": path}, hint=hint, id=check_id)


def _is_fernet_key(key: str) -> bool:
    try:
        Fernet(key)
    except ValueError:
        return False
    return True
