"""Metrics of single ONUs at /metrics/onus, for Prometheus and for Telegraf: off unless the operator sets a bound.

What is not known now has no sample: an ONU behind an OLT that does not answer has none, and one that is down has no
light.
"""

import re
from array import array
from collections.abc import Iterator
from typing import Any, NamedTuple

from django.conf import settings
from django.db.models import Q, QuerySet
from django.http import StreamingHttpResponse
from django.utils.decorators import method_decorator
from django.views.decorators.cache import never_cache
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.views import APIView

from facho.accounts.scope import EVERYTHING, scope_of
from facho.api.shared.filters import QueryStringFilter, checked, olt_by_id, one_of
from facho.api.shared.permissions import AnyAccepted, FromThisMachine, ReadOrOperate
from facho.infrastructure.spreadsheet import answer_parts
from facho.onus.models import Onu, name_port
from facho.onus.shown_state import is_unasked
from facho.onus.words import RunStateChoice

PROMETHEUS, INFLUX = "prometheus", "influx"
FORMATS = (PROMETHEUS, INFLUX)
INFLUX_TYPE = "text/plain; charset=utf-8"
MEASUREMENT = "facho_onu"
BATCH = 5_000
# Bytes that are sent at a time, about.
PIECE = 65_536
# In no array of 16 bits is a value that a device could mean by this.
ABSENT = -32_768

GIVEN = "facho_onu_metrics_onus"
LEFT_OUT = "facho_onu_metrics_left_out"


class OnuGauge(NamedTuple):
    """A figure of an ONU: its name, what it says, its column and how many steps of it are one unit."""

    name: str
    meaning: str
    column: str
    per_unit: int


ONLINE = "online"
LIGHT = (
    OnuGauge("rx_power_dbm", "Receive power of the ONU while it is online.", "rx_power_cdbm", 100),
    OnuGauge("tx_power_dbm", "Transmit power of the ONU while it is online.", "tx_power_cdbm", 100),
    OnuGauge("olt_rx_power_dbm", "What the OLT receives of the ONU while it is online.", "olt_rx_power_cdbm", 100),
    OnuGauge("temperature_celsius", "Temperature of the ONU while it is online.", "temperature_tenths", 10),
)
ONLINE_MEANING = "1 if the ONU is online, 0 if it is offline; none while its state is unknown."


class OnuSample(NamedTuple):
    """One ONU whose state is known, by lookup, and what is read of LIGHT."""

    pk: int
    olt__name: str
    pon_port__frame: int
    pon_port__slot: int
    pon_port__port: int
    pon_port__is_known: bool
    onu_id: int
    serial: str
    reading__run_state: str
    figures: tuple[int | None, ...]

    @property
    def place(self) -> str:
        place = self.pon_port__frame, self.pon_port__slot, self.pon_port__port
        return name_port(*place, is_known=self.pon_port__is_known)

    @property
    def is_online(self) -> bool:
        return self.reading__run_state == RunStateChoice.ONLINE


COLUMNS = (*OnuSample._fields[:-1], *(f"reading__{figure.column}" for figure in LIGHT))


def known_onus(*conditions: Q) -> QuerySet[Onu]:
    """Select present ONUs whose state is known now."""
    states = (RunStateChoice.ONLINE, RunStateChoice.OFFLINE)
    known = Onu.objects.filter(*conditions, ~is_unasked("olt__"), is_present=True, reading__run_state__in=states)
    return known.order_by("pk")


def load_samples(onus: QuerySet[Onu], most: int) -> Iterator[OnuSample]:
    """Yield the first ones by id, one query a batch."""
    last, left = 0, most
    while left and (batch := list(onus.filter(pk__gt=last).values_list(*COLUMNS)[: min(BATCH, left)])):
        for row in batch:
            yield OnuSample._make((*row[: -len(LIGHT)], row[-len(LIGHT) :]))
        last, left = batch[-1][0], left - len(batch)


@method_decorator(never_cache, name="dispatch")
class OnuMetricsView(APIView):
    """Metrics of ONUs, for everybody with access to /metrics, once FACHO_ONU_METRICS says of how many."""

    permission_classes = [FromThisMachine | ReadOrOperate]
    content_negotiation_class = AnyAccepted
    # Not a part of the API's document: Prometheus and Telegraf know their formats.
    schema = None
    query_parameters = {
        "olt": olt_by_id(),
        "format": checked(one_of("format", FORMATS).narrow),
    }

    def get(self, request: Request) -> StreamingHttpResponse:
        """Return the series of the ONUs in scope, narrowed by OLT."""
        most: int | None = settings.FACHO_ONU_METRICS
        if most is None:
            raise NotFound
        scope = scope_of(request.user) if request.user.is_authenticated else EVERYTHING
        conditions = QueryStringFilter().read_conditions(request, self)
        onus = known_onus(scope.condition(), *conditions)
        if request.query_params.get("format") == INFLUX:
            return answer_parts(write_influx(onus, most), INFLUX_TYPE)
        return answer_parts(write_prometheus(onus, most), CONTENT_TYPE_PLAIN_0_0_4)


def write_prometheus(onus: QuerySet[Onu], most: int) -> Iterator[bytes]:
    """Write the text format, which wants the series of a name together: labels and figures are held meanwhile."""
    labels: list[bytes] = []
    online, figures = bytearray(), [array("h") for _figure in LIGHT]
    for sample in load_samples(onus, most):
        labels.append(_labels(sample))
        online.append(sample.is_online)
        for held, value in zip(figures, sample.figures, strict=True):
            held.append(value if value is not None and sample.is_online else ABSENT)
    yield _head(GIVEN, "ONUs with series in this answer.") + f"{GIVEN} {len(labels)}\n".encode()
    left_out = _count_left_out(onus, given=len(labels), most=most)
    meaning = "ONUs without, because FACHO_ONU_METRICS allows no more; 0 when all are there."
    yield _head(LEFT_OUT, meaning) + f"{LEFT_OUT} {left_out}\n".encode()
    yield from _family(ONLINE, ONLINE_MEANING, labels, (str(state) for state in online))
    for figure, held in zip(LIGHT, figures, strict=True):
        values = (None if value == ABSENT else repr(value / figure.per_unit) for value in held)
        yield from _family(figure.name, figure.meaning, labels, values)


def _family(name: str, meaning: str, labels: list[bytes], values: Iterator[str | None]) -> Iterator[bytes]:
    full = f"{MEASUREMENT}_{name}"
    waiting, start = bytearray(_head(full, meaning)), full.encode()
    for label, value in zip(labels, values, strict=True):
        if value is not None:
            waiting += b"%s%s %s\n" % (start, label, value.encode())
        if len(waiting) >= PIECE:
            yield bytes(waiting)
            waiting.clear()
    yield bytes(waiting)


def _head(name: str, meaning: str) -> bytes:
    return f"# HELP {name} {meaning}\n# TYPE {name} gauge\n".encode()


def _labels(sample: OnuSample) -> bytes:
    pairs = (("olt", sample.olt__name), ("port", sample.place), ("onu", str(sample.onu_id)), ("serial", sample.serial))
    written = ",".join(f'{name}="{_escape_label(value)}"' for name, value in pairs)
    return f"{{{written}}}".encode(errors="replace")


def _escape_label(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def write_influx(onus: QuerySet[Onu], most: int) -> Iterator[bytes]:
    """Write line protocol, a line for each ONU, without times: Telegraf adds that of its read."""
    waiting, given = bytearray(), 0
    for sample in load_samples(onus, most):
        waiting += _line(sample)
        given += 1
        if len(waiting) >= PIECE:
            yield bytes(waiting)
            waiting.clear()
    left_out = _count_left_out(onus, given=given, most=most)
    yield bytes(waiting) + f"{MEASUREMENT}_metrics onus={given}i,left_out={left_out}i\n".encode()


def _count_left_out(onus: QuerySet[Onu], *, given: int, most: int) -> int:
    return max(onus.count() - given, 0) if given == most else 0


def _line(sample: OnuSample) -> bytes:
    tags: Any = (
        ("olt", sample.olt__name),
        ("onu", str(sample.onu_id)),
        ("port", sample.place),
        ("serial", sample.serial),
    )
    written = ",".join(f"{name}={escaped}" for name, value in tags if (escaped := _escape_tag(value)))
    fields = [f"{ONLINE}={int(sample.is_online)}i"]
    if sample.is_online:
        lit = zip(LIGHT, sample.figures, strict=True)
        fields += [f"{figure.name}={value / figure.per_unit!r}" for figure, value in lit if value is not None]
    return f"{MEASUREMENT},{written} {','.join(fields)}\n".encode(errors="replace")


_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_SPECIAL = re.compile(r"([,= ])")


def _escape_tag(text: str) -> str:
    """Escape a tag. The format has no way to write line breaks, and its readers differ about backslashes."""
    plain = _CONTROL.sub(" ", text).replace("\\", "/").strip()
    return _SPECIAL.sub(r"\\\1", plain)
