"""`facho user`: manages users that can log in. The audit log names the console as the author."""

import sys
from argparse import Namespace
from datetime import timedelta
from getpass import getpass
from gettext import gettext as _
from typing import Any

from django.contrib.auth.models import User
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext_lazy

from facho.accounts import factors
from facho.accounts.audit import Action, changed_words, console, record
from facho.accounts.models import Profile, ProfileGroup
from facho.accounts.roles import Role, give_role, highest_of, last_admins_among, people, role_of
from facho.accounts.sessions import end_sessions_of, load_sessions
from facho.accounts.throttle import forget_all_tries
from facho.api import tokens
from facho.api.models import ApiToken
from facho.core.cli.output import print_rows
from facho.core.product import OperatorError
from facho.hosts.models import OltGroup

# More than any community, key or password that a device or we accept.
MAX_LINE_BYTES = 4096


def read_line() -> str:
    line = sys.stdin.buffer.readline(MAX_LINE_BYTES)
    try:
        return line.decode().rstrip("\r\n")
    except UnicodeDecodeError:
        # The error's own text would hold the secret.
        raise OperatorError(_("Standard input is not UTF-8 text.")) from None


def is_interactive() -> bool:
    return sys.stdin.isatty()


def ask(prompt: str) -> str:
    return getpass(f"{prompt}: ")


def ask_twice(prompt: str) -> str:
    """Ask for something new, where a typing error would lock its owner out."""
    first = ask(prompt)
    if ask(_("%s (again)") % prompt) != first:
        raise OperatorError(_("The two entries differ; nothing was changed."))
    return first


def create_user(arguments: Namespace) -> None:
    if User.objects.filter(username=arguments.name).exists():
        raise OperatorError(_('There is already a user "%s".') % arguments.name)
    user = User(username=arguments.name)
    groups = find_groups(arguments.group)
    _check(user, password := _read_password(arguments))
    names = ", ".join(group.name for group in groups)
    with transaction.atomic():
        user.set_password(password)
        user.save()
        give_role(user, Role(arguments.role))
        if groups:
            Profile.objects.create(user=user).olt_groups.set(groups)
        record(console(), user, Action.ADDED, f"role: {arguments.role}" + (f", OLT groups: {names}" if names else ""))
    print(_("user %(name)s created with role %(role)s") % vars(arguments))
    if groups:
        print(_("only the OLTs of these groups are shown: %s") % names)


def list_users(arguments: Namespace) -> None:
    groups: dict[int, list[str]] = {}
    for user_id, name in ProfileGroup.objects.order_by("oltgroup__name").values_list(
        "profile__user_id", "oltgroup__name"
    ):
        groups.setdefault(user_id, []).append(name)
    rows = [
        (
            user.username,
            highest_of(user, [group.name for group in user.groups.all()]) or "",
            user.is_active,
            ", ".join(groups.get(user.pk, [])),
            user.last_login,
        )
        for user in people().prefetch_related("groups").order_by("username")
    ]
    print_rows(("name", "role", "active", "groups", "last_login"), rows, as_json=arguments.as_json)


def change_role(arguments: Namespace) -> None:
    """Give another role; the last administrator keeps theirs."""
    user = find_user(arguments.name)
    role, before = Role(arguments.role), role_of(user)
    if role is not Role.ADMIN:
        _refuse_last_admin(user)
    with transaction.atomic():
        give_role(user, role)
        _record_change(user, {"role": before}, {"role": role})
    print(_("user %(name)s has the role %(role)s") % vars(arguments))


def change_password(arguments: Namespace) -> None:
    """Set a password, which ends the person's sessions; at the console no login delay applies."""
    user = find_user(arguments.name)
    _check(user, password := _read_password(arguments))
    with transaction.atomic():
        user.set_password(password)
        user.save(update_fields=["password"])
        _record_change(user, {}, {"password": True})
    forget_all_tries()
    print(_("user %s has a new password; other sessions have ended") % arguments.name)


def reset_factors(arguments: Namespace) -> None:
    """Remove the second factor and the recovery codes of a person who lost both; their sessions end."""
    user = find_user(arguments.name)
    with transaction.atomic():
        if not factors.reset(user):
            raise OperatorError(_('"%s" has no second factor.') % arguments.name)
        end_sessions_of(user)
        record(console(), user, Action.CHANGED, gettext_lazy("Reset the second factor"))
    factors.tries_of(user).forget()
    print(_("user %s has no second factor any more") % arguments.name)


def list_sessions(arguments: Namespace) -> None:
    """Print the sessions of a person, the last used first."""
    user = find_user(arguments.name)
    rows = [
        (row.begun_at, row.seen_at, row.address, row.browser, row.way) for row in load_sessions(user, timezone.now())
    ]
    print_rows(("begun_at", "last_used_at", "address", "browser", "way"), rows, as_json=arguments.as_json)


def end_sessions(arguments: Namespace) -> None:
    user = find_user(arguments.name)
    with transaction.atomic():
        ended = end_sessions_of(user)
        record(console(), user, Action.CHANGED, changed_words({"sessions": ended}, {"sessions": 0}))
    print(_("user %(name)s: %(n)s sessions ended") % {"name": arguments.name, "n": ended})


def disable_user(arguments: Namespace) -> None:
    """Close an account; the last administrator's stays open."""
    user = find_user(arguments.name)
    _refuse_last_admin(user)
    _set_active(user, is_active=False)
    print(_("user %s may not log in any more") % arguments.name)


def enable_user(arguments: Namespace) -> None:
    """Open an account again, with the password and the tokens that it had."""
    _set_active(find_user(arguments.name), is_active=True)
    print(_("user %s may log in again") % arguments.name)


def find_user(name: str) -> User:
    user = people().filter(username=name).first()
    if user is None:
        raise OperatorError(_('There is no user "%s"; `facho user create` adds one.') % name)
    return user


def find_groups(names: list[str]) -> list[OltGroup]:
    """Load OLT groups by their names; one that does not exist would limit no user."""
    known = {group.name: group for group in OltGroup.objects.order_by("name")}
    for name in names:
        if name not in known:
            there_are = _("There are: %s.") % ", ".join(known) if known else _("There is none yet.")
            raise OperatorError(_('There is no OLT group "%s".') % name + " " + there_are)
    return [known[name] for name in dict.fromkeys(names)]


def _set_active(user: User, *, is_active: bool) -> None:
    before, user.is_active = user.is_active, is_active
    with transaction.atomic():
        user.save(update_fields=["is_active"])
        _record_change(user, {"active": before}, {"active": is_active})


def _record_change(user: User, before: dict[str, Any], after: dict[str, Any]) -> None:
    record(console(), user, Action.CHANGED, changed_words(before, after, secrets=["password"]))


def _refuse_last_admin(user: User) -> None:
    if last_admins_among([user]):
        raise OperatorError(_('"%s" is the last administrator; make another one first.') % user.username)


def _read_password(arguments: Namespace) -> str:
    if arguments.password_stdin or not is_interactive():
        return read_line()
    return ask_twice(_("Password"))


def _check(user: User, password: str) -> None:
    try:
        user.clean_fields(exclude=["password"])
        validate_password(password, user)
    except ValidationError as error:
        raise OperatorError(" ".join(error.messages)) from None


def create_token(arguments: Namespace) -> None:
    """Print the token alone on its line, so that a script can take it."""
    user = find_user(arguments.user)
    try:
        with transaction.atomic():
            text = tokens.create_token(
                user,
                role=Role(arguments.role) if arguments.role else None,
                expires_at=timezone.now() + timedelta(days=arguments.days),
                name=arguments.name,
                olt_groups=find_groups(arguments.group),
            )
            record(console(), ApiToken.objects.get(digest=tokens.digest(text)), Action.ADDED)
    except tokens.RoleTooHigh as error:
        raise OperatorError(
            _('User "%(user)s" has the role "%(role)s" and no token may do more.')
            % {"user": arguments.user, "role": error}
        ) from error
    print(text)


def list_tokens(arguments: Namespace) -> None:
    """Print every token without its text, which is not stored."""
    tokens = ApiToken.objects.select_related("user").prefetch_related("olt_groups").order_by("user__username", "id")
    rows = [
        (
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
    columns = ("id", "user", "name", "role", "groups", "created_at", "last_used_at", "expires_at")
    print_rows(columns, rows, as_json=arguments.as_json)


def revoke_token(arguments: Namespace) -> None:
    token = ApiToken.objects.select_related("user").filter(id=arguments.id).first()
    if token is None:
        raise OperatorError(_("There is no token %s; `facho token list` shows them.") % arguments.id)
    with transaction.atomic():
        record(console(), token, Action.DELETED)
        token.delete()
    print(_("token %s revoked") % arguments.id)
