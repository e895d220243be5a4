"""What an OLT tells of itself is kept as it was last reported, and goes when the OLT does not tell it any more."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import timedelta
from typing import Any

import pytest

from facho.hosts.models import OltData
from facho.hosts.olt_data import save_olt_values
from facho.polling.domain.collection import OltValue
from factories import NOW, make_olt

pytestmark = pytest.mark.django_db

LATER = NOW + timedelta(seconds=300)
CPU, OCTETS = "1.3.6.1.4.1.9.1", "1.3.6.1.2.1.31.1.1.1.6"


def cpu(board: int, percent: int) -> OltValue:
    return OltValue(CPU, f"0.{board}", "board.cpu", f"0/{board}", str(percent), "percent", str(percent))


def octets(count: int) -> OltValue:
    return OltValue(OCTETS, "7", "if.in_octets", "uplink", str(count), "B", str(count), is_counter=True)


def test_the_latest_value_is_kept_once() -> None:
    olt = make_olt()

    save_olt_values(olt.id, [cpu(1, 20), cpu(2, 30)], whole_oids=[CPU], now=NOW)
    changed = save_olt_values(olt.id, [cpu(1, 25), cpu(2, 30)], whole_oids=[CPU], now=LATER)

    assert changed == 1
    reported = OltData.objects.filter(olt=olt).values_list("place", "value", "unit", "updated_at")
    assert sorted(reported) == [("0/1", "25", "percent", LATER), ("0/2", "30", "percent", LATER)]


def test_a_row_goes_when_its_table_was_read_to_the_end_without_it() -> None:
    olt, other = make_olt(), make_olt()
    for each in (olt, other):
        save_olt_values(each.id, [cpu(1, 20), cpu(2, 30)], whole_oids=[CPU], now=NOW)

    save_olt_values(olt.id, [cpu(1, 20)], whole_oids=[], now=LATER)
    assert OltData.objects.filter(olt=olt).count() == 2
    save_olt_values(olt.id, [cpu(1, 20)], whole_oids=[CPU], now=LATER)

    assert OltData.objects.get(olt=olt).place == "0/1"
    assert OltData.objects.filter(olt=other).count() == 2


def test_a_counter_tells_how_fast_it_grows() -> None:
    olt = make_olt()

    rates = []
    for seconds, count in ((0, 1_000), (300, 31_000), (600, 5)):
        save_olt_values(olt.id, [octets(count)], whole_oids=[OCTETS], now=NOW + timedelta(seconds=seconds))
        rates.append(OltData.objects.get().per_second)

    assert rates == [None, 100.0, None]


def test_a_thousand_values_cost_a_handful_of_statements(
    django_assert_max_num_queries: Callable[[int], AbstractContextManager[Any]],
) -> None:
    olt = make_olt()
    save_olt_values(olt.id, [cpu(board, 20) for board in range(1_000)], whole_oids=[CPU], now=NOW)

    with django_assert_max_num_queries(5):
        save_olt_values(olt.id, [cpu(board, 20 + board // 900) for board in range(990)], whole_oids=[CPU], now=LATER)

    assert OltData.objects.count() == 990
