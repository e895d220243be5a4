"""`facho token`: API tokens for the programs of people. Their text is printed once."""

from argparse import ArgumentTypeError, Namespace
from dataclasses import dataclass
from datetime import datetime, timedelta
from gettext import gettext as _
from typing import TYPE_CHECKING

from facho.core.cli.arguments import Subparsers, add_command, add_group, add_json_flag, row_number, whole_number
from facho.core.cli.failure import CliError
from facho.core.cli.output import print_rows
from facho.core.cli.product import database_command
from facho.core.cli.user import ROLES, find_user

if TYPE_CHECKING:
    from facho.hosts.models import OltGroup

# As the page of one's account has it; its room needs Django, which no --help should load.
DEFAULT_DAYS = 365
MOST_DAYS = 3650
MAX_NAME = 80


@dataclass(frozen=True, slots=True)
class TokenRow:
    """A line of `facho token list`."""

    id: int
    user: str
    name: str
    role: str
    groups: str
    created_at: datetime
    last_used_at: datetime | None
    expires_at: datetime | None


def register(subparsers: Subparsers) -> None:
    """Add `token`."""
    tokens = add_group(subparsers, "token", _("API tokens"))
    create = add_command(tokens, "create", _("make a token; its text is printed once"), create_token)
    create.add_argument("user", metavar=_("USER"), help=_("login name of its owner"))
    create.add_argument("--role", choices=ROLES, help=_("what the token may do (default: what its owner may)"))
    create.add_argument(
        "--days", type=_days, default=DEFAULT_DAYS, metavar="N", help=_("valid for so many days (default: %(default)s)")
    )
    create.add_argument("--name", type=_name, default="", metavar=_("TEXT"), help=_("what it is for"))
    create.add_argument(
        "--group",
        action="append",
        default=[],
        metavar=_("NAME"),
        help=_("only the OLTs of this group; may be repeated"),
    )
    add_json_flag(add_command(tokens, "list", _("show the tokens, and when they were last used"), list_tokens))
    revoke = add_command(tokens, "revoke", _("end a token now"), revoke_token)
    revoke.add_argument("id", type=row_number, metavar=_("ID"), help=_("number of the token in `facho token list`"))


@database_command
def create_token(arguments: Namespace) -> int:
    """Print the token alone on its line, so that a script can take it."""
    from django.db import transaction
    from django.utils import timezone

    from facho.accounts.audit import Action, console, record
    from facho.accounts.roles import Role
    from facho.api import tokens
    from facho.api.models import ApiToken

    user = find_user(arguments.user)
    try:
        with transaction.atomic():
            text = tokens.create_token(
                user,
                role=Role(arguments.role) if arguments.role else None,
                expires_at=timezone.now() + timedelta(days=arguments.days),
                name=arguments.name,
                olt_groups=_groups(arguments.group),
            )
            record(console(), ApiToken.objects.get(digest=tokens.digest(text)), Action.ADDED)
    except tokens.RoleTooHigh as error:
        raise CliError(
            _('User "%(user)s" has the role "%(role)s" and no token may do more.')
            % {"user": arguments.user, "role": error}
        ) from error
    print(text)
    return 0


@database_command
def list_tokens(arguments: Namespace) -> int:
    """Print every token without its text, which nobody has."""
    from facho.api.models import ApiToken

    tokens = ApiToken.objects.select_related("user").prefetch_related("olt_groups").order_by("user__username", "id")
    rows = [
        TokenRow(
            token.id,
            token.user.username,
            token.name,
            token.role,
            ", ".join(group.name for group in token.olt_groups.all()),
            token.created_at,
            token.last_used_at,
            token.expires_at,
        )
        for token in tokens
    ]
    print_rows(TokenRow, rows, as_json=arguments.as_json)
    return 0


@database_command
def revoke_token(arguments: Namespace) -> int:
    """End a token."""
    from django.db import transaction

    from facho.accounts.audit import Action, console, record
    from facho.api.models import ApiToken

    token = ApiToken.objects.select_related("user").filter(id=arguments.id).first()
    if token is None:
        raise CliError(_("There is no token %s; `facho token list` shows them.") % arguments.id)
    with transaction.atomic():
        record(console(), token, Action.DELETED)
        token.delete()
    print(_("token %s revoked") % arguments.id)
    return 0


def _groups(names: list[str]) -> "list[OltGroup]":
    from facho.hosts.models import OltGroup

    found = {group.name: group for group in OltGroup.objects.filter(name__in=names)}
    for name in names:
        if name not in found:
            raise CliError(_('There is no OLT group "%s".') % name)
    return list(found.values())


def _days(text: str) -> int:
    number = whole_number(text)
    if number > MOST_DAYS:
        raise ArgumentTypeError(_("a token is valid for at most %s days") % MOST_DAYS)
    return number


def _name(text: str) -> str:
    if len(text) > MAX_NAME or not text.isprintable():
        raise ArgumentTypeError(_("a name is one line of at most %s characters") % MAX_NAME)
    return text
