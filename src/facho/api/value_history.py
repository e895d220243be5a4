"""How values that a job keeps changed over time: those of an OLT itself, and those of an ONU by an OID of one's own."""

from typing import Any

import numpy as np
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from facho.api.history import ask_for, read_wishes, span_of, wrong_questions_are_problems
from facho.api.history_serializers import (
    OltValueHistorySerializer,
    OltValueQuestionSerializer,
    OnuValueHistorySerializer,
    ValueQuestionSerializer,
)
from facho.api.scoped import must_see
from facho.hosts.models import Olt, OltData
from facho.onus.history import Series
from facho.onus.history_read_model import Question, load_olt_value_history, load_onu_history
from facho.onus.models import Onu
from facho.onus.value_history import find_metric, find_row
from facho.snmp_jobs.read_names import load_named_reads, name_read

_NEVER_KEPT = 0
_NOTHING = Series(np.zeros(0, dtype=np.int64), np.zeros(0), np.zeros(0), np.zeros(0))


class OltValueHistoryView(APIView):
    """The history of one value of an OLT."""

    @extend_schema(
        operation_id="olts_data_history",
        tags=["olts"],
        parameters=[OltValueQuestionSerializer],
        responses=OltValueHistorySerializer,
    )
    def get(self, request: Request, olt_id: int) -> Response:
        """Show one value of an OLT over time, by the OID and index under which its data lists it.

        A value has a history if a job reads it with the wish to keep one. Of a counter it is the growth in a second.
        """
        must_see(request, Olt.objects.filter(pk=olt_id), olt_path="")
        wishes = read_wishes(request, OltValueQuestionSerializer)
        oid, index = wishes["oid"], wishes["index"]
        metric, row_id = find_metric(oid), find_row(olt_id, index)
        with wrong_questions_are_problems():
            question = ask_for(metric or _NEVER_KEPT, wishes)
            series = load_olt_value_history(olt_id, row_id, question) if metric and row_id else _NOTHING
        value = OltData.objects.filter(olt_id=olt_id, oid=oid, index=index).first()
        body = {"olt_id": olt_id, "oid": oid, "index": index, "points": series, **span_of(question), **_named(value)}
        return Response(OltValueHistorySerializer(body, context=_context(question)).data)


class OnuValueHistoryView(APIView):
    """The history of one OID of an ONU."""

    @extend_schema(
        operation_id="onus_data_history",
        tags=["onus"],
        parameters=[ValueQuestionSerializer],
        responses=OnuValueHistorySerializer,
    )
    def get(self, request: Request, onu_id: int) -> Response:
        """Show the values of an OID that is not in the vendor's definition, wherever the ONU was plugged in."""
        onus = Onu.objects.filter(pk=onu_id)
        must_see(request, onus)
        wishes = read_wishes(request, ValueQuestionSerializer)
        metric = find_metric(wishes["oid"])
        with wrong_questions_are_problems():
            question = ask_for(metric or _NEVER_KEPT, wishes)
            series = load_onu_history(onu_id, question) if metric else _NOTHING
        vendor = onus.values_list("olt__vendor", flat=True).first() or ""
        read = name_read(wishes["oid"], load_named_reads(vendor))
        body = {"onu_id": onu_id, "oid": wishes["oid"], "name": read.name, "unit": read.unit, "points": series}
        return Response(OnuValueHistorySerializer({**body, **span_of(question)}, context=_context(question)).data)


def _named(value: OltData | None) -> dict[str, Any]:
    """Name a value as its latest one is named; it may be gone."""
    if value is None:
        return {"name": "", "unit": "", "place": ""}
    unit = value.unit if value.per_second is None else f"{value.unit}/s"
    return {"name": value.name, "unit": unit, "place": value.place}


def _context(question: Question) -> dict[str, Any]:
    return {"is_summed_up": bool(question.resolution)}
