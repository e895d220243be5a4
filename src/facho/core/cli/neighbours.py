"""`facho netbox …` and `facho webhook …`: devices of NetBox become OLTs; programs that get events."""

from argparse import Namespace
from datetime import datetime
from gettext import gettext as _
from pathlib import Path

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from facho.accounts.audit import Action, console, record
from facho.core.cli.output import print_rows, refused
from facho.core.product import BAD_CONFIGURATION, OperatorError
from facho.hosts.inventory import InventoryError, PlanChanged
from facho.neighbours import webhooks
from facho.neighbours.netbox import NetBoxAway
from facho.neighbours.netbox_sync import apply_sync, plan_sync, write_back

DEVICE_COLUMNS = ("device", "name", "what", "details")


def sync(arguments: Namespace) -> int:
    """Print the plan, then carry it out unless it is a dry run; 1 when a device could not be taken."""
    if not settings.FACHO_NETBOX_URL:
        raise OperatorError(_("FACHO_NETBOX_URL names no NetBox; see docs/neighbours.md."), status=BAD_CONFIGURATION)
    try:
        plan = plan_sync(disables=arguments.disable)
        rows = [
            (row.device_id, row.name, row.verdict.value if arguments.as_json else str(row.verdict.label), row.words)
            for row in plan.rows
        ]
        if rows or arguments.as_json:
            print_rows(DEVICE_COLUMNS, rows, as_json=arguments.as_json)
        else:
            print(_("NetBox and Facho agree."))
        if not arguments.dry_run:
            apply_sync(plan, now=timezone.now())
            write_back(plan)
    except InventoryError as error:
        raise refused(settings.FACHO_NETBOX_CREDENTIALS_FILE or Path(), error) from None
    except PlanChanged:
        raise OperatorError(_("The OLTs were changed meanwhile, so nothing was done: run it again.")) from None
    except NetBoxAway as error:
        raise OperatorError(str(error)) from error
    return 0 if plan.is_good else 1


WEBHOOK_COLUMNS = ("name", "address", "enabled", "waiting", "failing_since", "last_error", "last_sent_at")


def list_webhooks(arguments: Namespace) -> None:
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
    print_rows(WEBHOOK_COLUMNS, rows, as_json=arguments.as_json)


def replay(arguments: Namespace) -> None:
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
