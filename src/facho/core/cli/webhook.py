"""`facho webhook …`: the programs that get events, and having what they missed sent again."""

from argparse import Namespace
from datetime import datetime
from gettext import gettext as _

from django.db import transaction
from django.utils import timezone

from facho.accounts.audit import Action, console, record
from facho.core.cli.output import print_rows
from facho.core.product import OperatorError
from facho.neighbours import webhooks

COLUMNS = ("name", "address", "enabled", "waiting", "failing_since", "last_error", "last_sent_at")


def list_webhooks(arguments: Namespace) -> int:
    rows = [
        (
            each.name,
            each.shown_as,
            each.enabled,
            webhooks.count_waiting(each).number,
            each.failing_since and each.failing_since.isoformat(),
            each.last_error,
            each.last_sent_at and each.last_sent_at.isoformat(),
        )
        for each in webhooks.stored_webhooks().order_by("name")
    ]
    print_rows(COLUMNS, rows, as_json=arguments.as_json)
    return 0


def replay(arguments: Namespace) -> int:
    """Have everything since a time sent again, marked as such."""
    webhook = webhooks.stored_webhooks().filter(name=arguments.name).first()
    if webhook is None:
        raise OperatorError(_('There is no webhook "%s"; `facho webhook list` shows them.') % arguments.name)
    try:
        since = datetime.fromisoformat(arguments.since)
    except ValueError:
        arguments.usage_error(_("--since is a time such as 2026-10-05T14:00"))
        raise
    since = since if since.tzinfo else timezone.make_aware(since)
    with transaction.atomic():
        record(console(), webhook, Action.CHANGED, _("Sends again since %(time)s") % {"time": since.isoformat()})
        done = webhooks.replay(webhook.pk, since)
    numbers = {"events": done.events.number, "outages": done.outages}
    text = _("Sent again: %(events)s events, and %(outages)s beginnings and ends of outages.")
    if not done.events.is_exact:
        text = _("Sent again: more than %(events)s events, and %(outages)s beginnings and ends of outages.")
    print(text % numbers)
    return 0
