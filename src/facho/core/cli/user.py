"""`facho user create` and `facho token create`: people, and tokens for their programs."""

from argparse import Namespace
from datetime import timedelta
from gettext import gettext as _
from typing import TYPE_CHECKING

from facho.core.cli import secret_input
from facho.core.cli.arguments import Subparsers, add_command, add_group, whole_number
from facho.core.cli.failure import CliError
from facho.core.cli.product import database_command

if TYPE_CHECKING:
    from django.contrib.auth.models import User

ROLES = ("viewer", "operator", "admin")


def register(subparsers: Subparsers) -> None:
    """Add `user` and `token`."""
    users = add_group(subparsers, "user", _("people who may log in"))
    create = add_command(users, "create", _("add a person"), create_user)
    create.add_argument("name", metavar=_("NAME"), help=_("login name"))
    create.add_argument("--role", choices=ROLES, required=True, help=_("what the person may do"))
    create.add_argument(
        "--password-stdin", action="store_true", help=_("read the password from standard input instead of asking")
    )
    tokens = add_group(subparsers, "token", _("API tokens"))
    create = add_command(tokens, "create", _("make a token; its text is printed once"), create_token)
    create.add_argument("user", metavar=_("USER"), help=_("login name of its owner"))
    create.add_argument("--role", choices=ROLES, help=_("what the token may do (default: what its owner may)"))
    create.add_argument("--days", type=whole_number, metavar="N", help=_("valid for so many days (default: no end)"))


@database_command
def create_user(arguments: Namespace) -> int:
    """Add a person with a role and a password that Django's validators accept."""
    from django.contrib.auth.models import User
    from django.db import transaction

    from facho.accounts.roles import Role, give_role

    if User.objects.filter(username=arguments.name).exists():
        raise CliError(_('There already is a user "%s".') % arguments.name)
    user = User(username=arguments.name)
    _check(user, password := _read_password(arguments))
    with transaction.atomic():
        user.set_password(password)
        user.save()
        give_role(user, Role(arguments.role))
    print(_("user %(name)s created with role %(role)s") % vars(arguments))
    return 0


@database_command
def create_token(arguments: Namespace) -> int:
    """Print the token alone on its line, so that a script can take it."""
    from django.contrib.auth.models import User
    from django.utils import timezone

    from facho.accounts.roles import Role
    from facho.api import tokens

    user = User.objects.filter(username=arguments.user).first()
    if user is None:
        raise CliError(_('There is no user "%s"; `facho user create` adds one.') % arguments.user)
    role = Role(arguments.role) if arguments.role else None
    expires_at = timezone.now() + timedelta(days=arguments.days) if arguments.days else None
    try:
        print(tokens.create_token(user, role=role, expires_at=expires_at))
    except tokens.RoleTooHigh as error:
        raise CliError(
            _('User "%(user)s" has the role "%(role)s" and no token may do more.')
            % {"user": arguments.user, "role": error}
        ) from error
    return 0


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
