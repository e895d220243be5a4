"""`facho traps on|off`: the switch of the receiver."""

import pytest
from cli_runner import Command

from facho.core.product import BAD_CONFIGURATION
from facho.traps.store import is_switched_on

pytestmark = pytest.mark.django_db


def test_traps_are_switched_on_and_off_with_an_entry_in_the_audit(facho: Command) -> None:
    from django.contrib.admin.models import LogEntry

    on = facho("traps", "on")
    assert (on.status, on.out, is_switched_on()) == (0, "Listening for traps on 0.0.0.0:1162.\n", True)

    off = facho("traps", "off")
    assert (off.status, off.out, is_switched_on()) == (0, "Traps are no longer received (0.0.0.0:1162).\n", False)
    assert [entry.change_message for entry in LogEntry.objects.order_by("id")] == ["switched on", "switched off"]


def test_the_embedded_product_hears_by_itself(facho: Command) -> None:
    done = facho("traps")

    assert done.status == BAD_CONFIGURATION
    assert "use `facho run`" in done.err
