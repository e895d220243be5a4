"""`facho netbox …`: devices of NetBox become OLTs, and what Facho knows of them is written back."""

from argparse import Namespace
from gettext import gettext as _
from pathlib import Path

from django.conf import settings
from django.utils import timezone

from facho.core.cli.output import print_rows, refused
from facho.core.product import BAD_CONFIGURATION, OperatorError
from facho.hosts.inventory import InventoryError, PlanChanged
from facho.neighbours.netbox import NetBoxAway
from facho.neighbours.netbox_sync import apply_sync, plan_sync, write_back

COLUMNS = ("device", "name", "what", "details")


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
            print_rows(COLUMNS, rows, as_json=arguments.as_json)
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
