"""`facho user`: the people who may log in. What is done here is written down in the name of the console."""

from argparse import Namespace
from dataclasses import dataclass
from datetime import datetime
from gettext import gettext as _
from typing import TYPE_CHECKING, Any

from facho.core.cli import secret_input
from facho.core.cli.arguments import Subparsers, add_command, add_group, add_json_flag
from facho.core.cli.failure import CliError
from facho.core.cli.output import print_rows
from facho.core.cli.product import Handler, database_command

if TYPE_CHECKING:
    from django.contrib.auth.models import User

ROLES = ("viewer", "operator", "admin")


@dataclass(frozen=True, slots=True)
class UserRow:
    """A line of `facho user list`."""

    name: str
    role: str
    active: bool
    groups: str
    last_login: datetime | None


def register(subparsers: Subparsers) -> None:
    """Add `user`."""
    users = add_group(subparsers, "user", _("people who may log in"))
    create = add_command(users, "create", _("add a person"), create_user)
    create.add_argument("name", metavar=_("NAME"), help=_("login name"))
    create.add_argument("--role", choices=ROLES, required=True, help=_("what the person may do"))
    _add_password_flag(create)
    add_json_flag(add_command(users, "list", _("show who may log in, and what they may do"), list_users))
    role = _add_for_one(users, "role", _("give a person another role"), change_role)
    role.add_argument("role", choices=ROLES, help=_("what the person may do"))
    _add_password_flag(
        _add_for_one(users, "password", _("set a new password, and let everyone try again at once"), change_password)
    )
    _add_for_one(
        users, "disable", _("accept no login, session or token of a person until they are enabled"), disable_user
    )
    _add_for_one(users, "enable", _("let a person in again"), enable_user)


@database_command
def create_user(arguments: Namespace) -> int:
    """Add a person with a role and a password that Django's validators accept."""
    from django.contrib.auth.models import User
    from django.db import transaction

    from facho.accounts.audit import Action, console, record
    from facho.accounts.roles import Role, give_role

    if User.objects.filter(username=arguments.name).exists():
        raise CliError(_('There already is a user "%s".') % arguments.name)
    user = User(username=arguments.name)
    _check(user, password := _read_password(arguments))
    with transaction.atomic():
        user.set_password(password)
        user.save()
        give_role(user, Role(arguments.role))
        record(console(), user, Action.ADDED, f"role: {arguments.role}")
    print(_("user %(name)s created with role %(role)s") % vars(arguments))
    return 0


@database_command
def list_users(arguments: Namespace) -> int:
    """Print everyone who has an account."""
    from facho.accounts.models import ProfileGroup
    from facho.accounts.people import people
    from facho.accounts.roles import highest_of

    groups: dict[int, list[str]] = {}
    for user_id, name in ProfileGroup.objects.order_by("oltgroup__name").values_list(
        "profile__user_id", "oltgroup__name"
    ):
        groups.setdefault(user_id, []).append(name)
    rows = [
        UserRow(
            user.username,
            highest_of(user, [group.name for group in user.groups.all()]) or "",
            user.is_active,
            ", ".join(groups.get(user.pk, [])),
            user.last_login,
        )
        for user in people().prefetch_related("groups").order_by("username")
    ]
    print_rows(UserRow, rows, as_json=arguments.as_json)
    return 0


@database_command
def change_role(arguments: Namespace) -> int:
    """Give another role; the last administrator keeps theirs."""
    from facho.accounts.roles import Role, give_role, role_of

    user = find_user(arguments.name)
    role, before = Role(arguments.role), role_of(user)
    if role is not Role.ADMIN:
        _refuse_last_admin(user)
    _change(user, lambda: give_role(user, role), {"role": before}, {"role": role})
    print(_("user %(name)s has the role %(role)s") % vars(arguments))
    return 0


@database_command
def change_password(arguments: Namespace) -> int:
    """Set a password, which ends the person's sessions; whoever is at the console need not wait for wrong tries."""
    from facho.accounts.throttle import forget_all_tries

    user = find_user(arguments.name)
    _check(user, password := _read_password(arguments))

    def store() -> None:
        user.set_password(password)
        user.save(update_fields=["password"])

    _change(user, store, {}, {"password": True})
    forget_all_tries()
    print(_("user %s has a new password; other sessions have ended") % arguments.name)
    return 0


@database_command
def disable_user(arguments: Namespace) -> int:
    """Close an account; the last administrator's stays open."""
    user = find_user(arguments.name)
    _refuse_last_admin(user)
    _set_active(user, is_active=False)
    print(_("user %s may not log in any more") % arguments.name)
    return 0


@database_command
def enable_user(arguments: Namespace) -> int:
    """Open an account again, with the password and the tokens that it had."""
    _set_active(find_user(arguments.name), is_active=True)
    print(_("user %s may log in again") % arguments.name)
    return 0


def find_user(name: str) -> "User":
    """Load a person by the login name."""
    from facho.accounts.people import people

    user = people().filter(username=name).first()
    if user is None:
        raise CliError(_('There is no user "%s"; `facho user create` adds one.') % name)
    return user


def _set_active(user: "User", *, is_active: bool) -> None:
    before = user.is_active

    def store() -> None:
        user.is_active = is_active
        user.save(update_fields=["is_active"])

    _change(user, store, {"active": before}, {"active": is_active})


def _change(user: "User", store: Any, before: dict[str, Any], after: dict[str, Any]) -> None:
    """Change an account and write it down, both or neither."""
    from django.db import transaction

    from facho.accounts.audit import Action, changed_words, console, record

    with transaction.atomic():
        store()
        record(console(), user, Action.CHANGED, changed_words(before, after, secrets=["password"]))


def _refuse_last_admin(user: "User") -> None:
    from facho.accounts.people import last_admins_among

    if last_admins_among([user]):
        raise CliError(_('"%s" is the last administrator; make another one first.') % user.username)


def _add_for_one(users: Subparsers, name: str, summary: str, handler: Handler) -> Any:
    command = add_command(users, name, summary, handler)
    command.add_argument("name", metavar=_("NAME"), help=_("login name"))
    return command


def _add_password_flag(command: Any) -> None:
    command.add_argument(
        "--password-stdin", action="store_true", help=_("read the password from standard input instead of asking")
    )


def _read_password(arguments: Namespace) -> str:
    if arguments.password_stdin or not secret_input.is_interactive():
        return secret_input.read_line()
    return secret_input.ask_twice(_("Password"))


def _check(user: "User", password: str) -> None:
    from django.contrib.auth.password_validation import validate_password
    from django.core.exceptions import ValidationError

    try:
        user.clean_fields(exclude=["password"])
        validate_password(password, user)
    except ValidationError as error:
        raise CliError(" ".join(error.messages)) from None
