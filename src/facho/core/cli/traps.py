"""`facho traps`: hears the notifications of OLTs in the distributed mode, switches them on and off, and prints them."""

import time
from argparse import Namespace
from gettext import gettext as _

from django.conf import settings
from django.db import transaction

from facho.core.product import bring_up_to_date, open_distributed, open_product, tell_warnings

LOOK_SECONDS = 0.5


def traps(arguments: Namespace) -> int:
    """Do what the word says."""
    if arguments.what == "run":
        return _run()
    open_product()
    bring_up_to_date()
    return _watch() if arguments.what == "watch" else _switch(is_on=arguments.what == "on")


def _run() -> int:
    """Hear until SIGINT or SIGTERM."""
    open_distributed()
    tell_warnings()
    from facho.core.processes.traps import main

    main()
    return 0


def _switch(*, is_on: bool) -> int:
    # They need the models, so they are loaded after Django.
    from facho.core.cli.output import write_down
    from facho.traps.models import TrapSwitch
    from facho.traps.store import switch

    with transaction.atomic():
        switch(is_on=is_on)
        write_down("CHANGED", TrapSwitch.objects.all(), _("switched on") if is_on else _("switched off"))
    told = _("Traps are heard at %s.") if is_on else _("Traps are not heard any more (%s).")
    print(told % settings.FACHO_TRAPS_BIND)
    return 0


def _watch() -> int:
    """Print what is heard from now on, until Ctrl-C."""
    from facho.core.cli.output import cell
    from facho.hosts.store import OLT_SECRETS
    from facho.traps.models import Trap, TrapSender

    last = Trap.objects.order_by("-id").values_list("id", flat=True).first() or 0
    counts = dict(TrapSender.objects.values_list("id", "count"))
    while True:
        heard = Trap.objects.filter(id__gt=last).select_related("olt").defer(*OLT_SECRETS)
        for trap in heard.order_by("id")[:500]:
            last = trap.id
            words = [trap.heard_at, trap.olt.name, trap.get_meaning_display(), trap.place, trap.name, trap.serial]
            print("  ".join(cell(word) for word in words), flush=True)
        for sender in TrapSender.objects.order_by("id"):
            if sender.count > counts.get(sender.id, 0):
                told = {"count": sender.count - counts.get(sender.id, 0), "address": sender.address}
                print(
                    _("%(count)s from %(address)s not accepted") % told + f": {sender.get_reason_display()}", flush=True
                )
            counts[sender.id] = sender.count
        time.sleep(LOOK_SECONDS)
