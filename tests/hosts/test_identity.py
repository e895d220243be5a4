"""What an OLT says of itself is kept beside what its operator says of it."""

from typing import Any

import pytest
from django.db import connection

from facho.hosts.models import Brand, Olt
from facho.hosts.store import save_identity
from facho.polling.domain.collection import OltIdentity
from factories import NOW, make_olt

pytestmark = pytest.mark.django_db

HUAWEI = OltIdentity(
    "olt-1", "Huawei Integrated Access Software", "1.3.6.1.4.1.2011.2.248", "huawei_smartax", "Huawei", "MA5800"
)


def test_an_olt_without_a_vendor_gets_the_one_that_was_recognised() -> None:
    olt = make_olt(vendor="")

    save_identity(olt.id, HUAWEI, now=NOW)

    olt.refresh_from_db()
    assert (olt.vendor, olt.sys_name, str(olt.model), olt.updated_at) == (
        "huawei_smartax",
        "olt-1",
        "Huawei MA5800",
        NOW,
    )


def test_a_vendor_that_was_chosen_stays() -> None:
    olt = make_olt(vendor="generic")

    save_identity(olt.id, HUAWEI, now=NOW)

    assert Olt.objects.get().vendor == "generic"


def test_a_vendor_stays_that_is_chosen_while_the_answer_is_stored() -> None:
    olt = make_olt(vendor="")

    with connection.execute_wrapper(_choose_while_brands_are_looked_up):
        save_identity(olt.id, HUAWEI, now=NOW)

    assert Olt.objects.get().vendor == "generic"


def _choose_while_brands_are_looked_up(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
    if sql.startswith("INSERT") and Brand._meta.db_table in sql:
        Olt.objects.update(vendor="generic")
    return execute(sql, params, many, context)
