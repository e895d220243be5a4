"""How values of an ONU, or of all ONUs of a PON port, changed over time. Gaps are nulls, never lines drawn across."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from facho.api.filters import unknown_parameters
from facho.api.history_serializers import (
    HistoryQuestionSerializer,
    OnuHistorySerializer,
    PortHistorySerializer,
    SpanQuestionSerializer,
)
from facho.api.scoped import must_see
from facho.onus.history_metrics import Metric
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
        must_see(request, Onu.objects.filter(pk=onu_id))
        with wrong_questions_are_problems():
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
        must_see(request, PonPort.objects.filter(pk=pon_port_id))
        with wrong_questions_are_problems():
            question = _question(request)
            series = load_port_history(pon_port_id, question)
        body = {**_asked(question), "pon_port_id": pon_port_id, "at": series.at, "onus": series}
        context = {"is_summed_up": bool(question.resolution), "names": load_names(series.onu_ids.tolist())}
        return Response(PortHistorySerializer(body, context=context).data)


@contextmanager
def wrong_questions_are_problems() -> Iterator[None]:
    """Name the parameter that asks for what cannot be shown."""
    try:
        yield
    except WrongQuestion as error:
        raise ValidationError({error.field: [str(error)]}) from error


def read_wishes(request: Request, kind: type[SpanQuestionSerializer]) -> dict[str, Any]:
    """Read the query string; an empty parameter narrows nothing, as in lists."""
    wanted = kind(data={name: text for name, text in request.query_params.items() if text})
    if unknown := unknown_parameters(request, wanted.fields):
        raise ValidationError(unknown)
    wanted.is_valid(raise_exception=True)
    wishes: dict[str, Any] = wanted.validated_data
    return wishes


def ask_for(metric: int, values: Mapping[str, Any]) -> Question:
    """Ask for a metric, in the time and at the resolution that is wished for."""
    return ask(
        metric,
        start=values.get("from"),
        end=values.get("to"),
        detail=Detail(values["resolution"]),
        now=timezone.now(),
    )


def _question(request: Request) -> Question:
    wishes = read_wishes(request, HistoryQuestionSerializer)
    return ask_for(METRICS[wishes["metric"]], wishes)


def _asked(question: Question) -> dict[str, Any]:
    metric = Metric(question.metric).name.lower()
    return {**span_of(question), "metric": metric, "unit": question.unit.value}


def span_of(question: Question) -> dict[str, Any]:
    """Write what was taken of the time."""
    return {
        "resolution": question.detail.value,
        "from": question.start,
        "to": question.end,
    }
