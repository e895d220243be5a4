"""How values of an ONU, or of all ONUs of a PON port, changed over time. Gaps are nulls, never lines drawn across."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db.models import QuerySet
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework.exceptions import NotFound, ValidationError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from facho.api.history_serializers import HistoryQuestionSerializer, OnuHistorySerializer, PortHistorySerializer
from facho.onus.history_read_model import (
    METRICS,
    Detail,
    Question,
    WrongQuestion,
    ask,
    load_names,
    load_onu_history,
    load_port_history,
)
from facho.onus.models import Onu, PonPort


class OnuHistoryView(APIView):
    """The history of one ONU."""

    @extend_schema(
        operation_id="onus_history",
        tags=["onus"],
        parameters=[HistoryQuestionSerializer],
        responses=OnuHistorySerializer,
    )
    def get(self, request: Request, onu_id: int) -> Response:
        """Show one metric of an ONU over time, by default its receive power of the last day.

        Each gap is a point whose value is null: one poll that did not come is enough. `auto` takes every sample of up
        to two days, hours of up to two months and days beyond, as far as they are still kept.
        """
        _must_exist(Onu.objects.filter(pk=onu_id))
        with _wrong_questions_are_problems():
            question = _question(request)
            series = load_onu_history(onu_id, question)
        body = {**_asked(question), "onu_id": onu_id, "points": series}
        return Response(OnuHistorySerializer(body, context={"is_summed_up": bool(question.resolution)}).data)


class PortHistoryView(APIView):
    """The history of all ONUs of one PON port."""

    @extend_schema(
        operation_id="pon_ports_history",
        tags=["pon-ports"],
        parameters=[HistoryQuestionSerializer],
        responses=PortHistorySerializer,
    )
    def get(self, request: Request, pon_port_id: int) -> Response:
        """Show one metric of all ONUs that were at a PON port over time, by default their light of the last day."""
        _must_exist(PonPort.objects.filter(pk=pon_port_id))
        with _wrong_questions_are_problems():
            question = _question(request)
            series = load_port_history(pon_port_id, question)
        body = {**_asked(question), "pon_port_id": pon_port_id, "at": series.at, "onus": series}
        context = {"is_summed_up": bool(question.resolution), "names": load_names(series.onu_ids.tolist())}
        return Response(PortHistorySerializer(body, context=context).data)


def _must_exist(rows: QuerySet[Any]) -> None:
    if not rows.exists():
        raise NotFound


@contextmanager
def _wrong_questions_are_problems() -> Iterator[None]:
    try:
        yield
    except WrongQuestion as error:
        raise ValidationError({error.field: [str(error)]}) from error


def _question(request: Request) -> Question:
    # An empty parameter narrows nothing, as in lists.
    given = {name: text for name, text in request.query_params.items() if text}
    wanted = HistoryQuestionSerializer(data=given)
    wanted.is_valid(raise_exception=True)
    values = wanted.validated_data
    return ask(
        METRICS[values["metric"]],
        start=values.get("from"),
        end=values.get("to"),
        detail=Detail(values["resolution"]),
        now=timezone.now(),
    )


def _asked(question: Question) -> dict[str, Any]:
    return {
        "metric": question.metric.name.lower(),
        "unit": question.unit.value,
        "resolution": question.detail.value,
        "from": question.start,
        "to": question.end,
    }
