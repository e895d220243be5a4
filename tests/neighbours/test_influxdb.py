"""Metrics of single ONUs as line protocol, in a real InfluxDB; Telegraf only adds the time of its read."""

from pathlib import Path

import pytest

from api.rows import make_olt, make_onu
from facho.neighbours.onu_metrics import known_onus, write_influx
from neighbours.line_protocol import read_line_protocol
from servers.influxdb import private_influxdb

pytestmark = [pytest.mark.django_db, pytest.mark.any_database, pytest.mark.thorough, pytest.mark.slow]


def test_influxdb_takes_every_line_and_reads_tags_and_fields_as_they_were_written(tmp_path: Path) -> None:
    centro, hostile = make_olt("CENTRO"), make_olt('a"b\\c\nd} 1, x=y \\')
    light = {"rx_power_cdbm": -2150, "tx_power_cdbm": 230, "olt_rx_power_cdbm": None, "temperature_tenths": 0}
    make_onu(centro, (0, 1, 3, 7), serial="HWTC00000007", run_state="online", **light)
    make_onu(centro, (0, 1, 3, 8), serial="", run_state="offline")
    make_onu(hostile, (0, 1, 3, 9), serial="\t\\,= \x7f", run_state="online", rx_power_cdbm=32_767)
    lines = b"".join(write_influx(known_onus(), most=10))

    with private_influxdb(tmp_path) as server:
        answer = server.write(lines)
        kept = [point for name in ("facho_onu", "facho_onu_metrics") for point in server.points(name)]

    written = [{**point.tags, **point.fields} for point in read_line_protocol(lines.decode())]
    assert answer == (204, "")
    # The time is that of the write.
    assert all(point.pop("time") for point in kept)
    assert {point.get("onu"): point for point in kept} == {point.get("onu"): point for point in written}
    assert len(kept) == len(written) == 4
