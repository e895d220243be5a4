"""SmartOLT's API as far as Facho can answer it: its addresses, header and envelope; it reads and never writes."""

from collections.abc import Callable, Iterator
from http import HTTPStatus
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.db.models import Q, QuerySet
from django.http import StreamingHttpResponse
from django.urls import path
from django.utils.decorators import method_decorator
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.cache import never_cache
from rest_framework.authentication import SessionAuthentication
from rest_framework.exceptions import APIException, NotFound
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from facho.accounts.roles import Role
from facho.accounts.scope import OltScope, scope_of
from facho.api.shared import filters
from facho.api.shared.filters import QueryParameter, QueryStringFilter, refuse_parameters
from facho.api.shared.permissions import AnyAccepted, BearerTokenAuthentication, ReadOrOperate, judge_token
from facho.api.shared.problems import problem_handler
from facho.api.tokens import Grant
from facho.hosts.models import Olt, Reachability, WaitingOnu
from facho.infrastructure.spreadsheet import answer_parts, write_json
from facho.neighbours import smartolt
from facho.neighbours.smartolt import OnuRow, Shaped, answer_admin
from facho.onus.models import Onu
from facho.onus.search import of_code
from facho.plant.boxes import visible_boxes, visible_zones

TOKEN_HEADER = "X-Token"  # noqa: S105 the name of a header
MAX_PAGE_SIZE = 100
JSON_TYPE = "application/json"


class TokenHeaderAuthentication(BearerTokenAuthentication):
    """Accepts an API token in SmartOLT's header; a bearer token as well."""

    def authenticate(self, request: Request) -> tuple[User, Grant] | None:
        """Return user and grant, None without a token, or raise."""
        token = request.headers.get(TOKEN_HEADER)
        return super().authenticate(request) if token is None else judge_token(request, token.strip())

    def authenticate_header(self, request: Request) -> str:
        """Name the header that is missing."""
        return TOKEN_HEADER


class AnyRole(ReadOrOperate):
    """Every role reads; a write gets past here as well and is refused with its own reason."""

    writes_from = Role.VIEWER


class OnlyReads(APIException):
    status_code = HTTPStatus.METHOD_NOT_ALLOWED
    default_code = "only_reads"
    default_detail = gettext_lazy("Facho only reads: it changes nothing on an OLT or an ONU.")


class NotAnswered(APIException):
    status_code = HTTPStatus.METHOD_NOT_ALLOWED
    default_code = "not_answered"
    default_detail = gettext_lazy("Facho does not support this call. docs/smartolt-api.md lists the supported ones.")


class SeveralOnus(APIException):
    status_code = HTTPStatus.CONFLICT
    default_code = "several_onus"


class UnknownNow(APIException):
    status_code = HTTPStatus.SERVICE_UNAVAILABLE
    default_code = "unknown_now"
    default_detail = gettext_lazy("The OLT does not answer or is disabled, so this is unknown now.")


def smartolt_handler(error: Exception, context: Any) -> Response | None:
    """Write an error in SmartOLT's envelope, with the status and headers that it has elsewhere."""
    answer = problem_handler(error, context)
    if answer is not None:
        problem: Any = answer.data
        inputs = [f"{each['field']}: {each['detail']}" for each in problem["errors"]]
        text = " ".join(inputs) or problem["detail"]
        answer.data = {"status": False, "response_code": "error", "error": text}
        answer.content_type = JSON_TYPE
    return answer


@method_decorator(never_cache, name="dispatch")
class SmartOltView(APIView):
    """What all calls share."""

    authentication_classes = [TokenHeaderAuthentication, SessionAuthentication]
    permission_classes = [AnyRole]
    content_negotiation_class = AnyAccepted
    metadata_class = None  # no OPTIONS
    # Not a part of the API's document: it is described where it comes from.
    schema = None

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        if not settings.FACHO_SMARTOLT_API:
            raise NotFound

    def get_exception_handler(self) -> Callable[[Exception, Any], Response | None]:
        return smartolt_handler

    def http_method_not_allowed(self, request: Any, *args: Any, **kwargs: Any) -> Response:
        raise OnlyReads

    @property
    def scope(self) -> OltScope:
        return scope_of(self.request.user)

    def find_olt(self, olt_id: int) -> Olt:
        """Return an OLT in scope whose state is known now, or raise."""
        olt = self.scope.narrow(Olt.objects.only("pk", "name", "enabled", "reachability"), "").filter(pk=olt_id).first()
        if olt is None:
            raise NotFound(_("There is no OLT with this id."))
        if not olt.enabled or olt.reachability != Reachability.UP:
            raise UnknownNow
        return olt


def succeeded(**parts: Any) -> Response:
    return Response({"status": True, "response_code": "success", **parts})


class OtherCallView(SmartOltView):
    """Every other call: those that write, and those that Facho cannot answer."""

    def get(self, request: Request, call: str) -> Response:
        raise NotAnswered


class ListView(SmartOltView):
    """A short list: of the OLTs in scope, or of one OLT."""

    load: Callable[..., list[Shaped]] = staticmethod(smartolt.load_olts)

    def get(self, request: Request, olt_id: int | None = None) -> Response:
        refuse_parameters(request)
        return succeeded(response=self.load(self.scope if olt_id is None else self.find_olt(olt_id)))


def load_zones(scope: OltScope) -> list[Shaped]:
    zones = visible_zones(scope).order_by("name").values_list("pk", "name")
    return [{"id": str(pk), "name": name, "imported_date": None, "imported_from_olt": None} for pk, name in zones]


class BoxesView(SmartOltView):
    def get(self, request: Request, zone_id: int) -> Response:
        """Return the boxes of a zone: what SmartOLT calls ODB."""
        refuse_parameters(request)
        if not visible_zones(self.scope).filter(pk=zone_id).exists():
            raise NotFound(_("There is no zone with this id."))
        return succeeded(response=smartolt.load_boxes(visible_boxes(self.scope).filter(zone_id=zone_id)))


class WaitingView(SmartOltView):
    def get(self, request: Request, olt_id: int | None = None) -> Response:
        """Return the ONUs that wait for authorisation, as last seen."""
        refuse_parameters(request)
        waiting = self.scope.narrow(WaitingOnu.objects.all())
        if olt_id is not None:
            waiting = waiting.filter(olt=self.find_olt(olt_id))
        return succeeded(response=smartolt.load_waiting(waiting))


def _word_of(conditions: Callable[[str], Q], words: str) -> QueryParameter:
    """Match any of several words, separated by commas."""

    def narrow(text: str) -> Q:
        found = Q()
        try:
            for word in text.split(","):
                found |= conditions(word.strip())
        except KeyError:
            raise ValueError(_("Choose one of: %(values)s.") % {"values": words}) from None
        return found

    return QueryParameter(narrow)


def _external_id(text: str) -> Q:
    found = smartolt.of_external_id(text)
    return Q(pk__in=[]) if found is None else found


class OnuListView(SmartOltView):
    """A list of ONUs, written while it is read."""

    shape: Callable[[OnuRow], Shaped] = staticmethod(smartolt.shape_details)
    key = "response"
    query_parameters = {
        "olt_id": filters.number("olt_id"),
        "board": filters.number("pon_port__slot"),
        "port": filters.number("pon_port__port"),
        "zone": QueryParameter(lambda text: Q(attachment__box__zone__name=text)),
    }

    def get(self, request: Request) -> Response | StreamingHttpResponse:
        return self.stream(self.find_onus(request), self.shape)

    def find_onus(self, request: Request) -> QuerySet[Onu]:
        conditions = QueryStringFilter().read_conditions(request, self)
        return smartolt.select_onus(self.scope.condition(), *conditions)

    def stream(self, onus: QuerySet[Onu], shape: Callable[[OnuRow], Shaped]) -> StreamingHttpResponse:
        rows = map(shape, smartolt.load_in_batches(onus))
        return answer_parts(_in_envelope(self.key, write_json(rows)), JSON_TYPE)


def _in_envelope(key: str, parts: Iterator[bytes]) -> Iterator[bytes]:
    # The first rows are read before anything is sent, so that a database that fails is still an error.
    first = next(parts)
    yield f'{{"status": true, "response_code": "success", "{key}": '.encode() + first
    yield from parts
    yield b"}"


class AllDetailsView(OnuListView):
    """Everything of all ONUs, or a page of them."""

    key = "onus"
    query_parameters = {
        **OnuListView.query_parameters,
        "odb": QueryParameter(lambda text: Q(attachment__box__name=text)),
        "sn": QueryParameter(of_code),
        "external_id": QueryParameter(_external_id),
        "status": _word_of(smartolt.of_status, "online, pwrfail, los, offline"),
        "signal": _word_of(smartolt.of_signal, "very_good, warning, critical"),
        "page": filters.checked(lambda text: _page_number(text)),
        "page_size": filters.checked(lambda text: _page_number(text)),
        "fields": filters.checked(lambda text: _chosen_fields(text)),
    }

    def get(self, request: Request) -> Response | StreamingHttpResponse:
        onus, asked = self.find_onus(request), request.query_params
        fields = _chosen_fields(asked.get("fields", ""))

        def shape(row: OnuRow) -> Shaped:
            shaped = smartolt.shape_details(row)
            return {name: shaped[name] for name in fields} if fields else shaped

        if not asked.get("page") and not asked.get("page_size"):
            return self.stream(onus, shape)
        page = _page_number(asked.get("page") or "1")
        size = min(_page_number(asked.get("page_size") or str(MAX_PAGE_SIZE)), MAX_PAGE_SIZE)
        total, start = onus.count(), (page - 1) * size
        # No offset that a database could not count to.
        rows = smartolt.load_rows(onus[start : start + size]) if start < total else []
        pages = {"page": page, "page_size": size, "total_items": total, "total_pages": -(-total // size)}
        return succeeded(**pages, onus=list(map(shape, rows)))


def _page_number(text: str) -> int:
    number = filters.whole_number(text)
    if number < 1:
        raise ValueError(_("Enter a whole number from 1."))
    return number


def _chosen_fields(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    if unknown := [name for name in names if name not in smartolt.DETAILS]:
        raise ValueError(_("Unknown fields: %(names)s.") % {"names": ", ".join(unknown[:5])})
    return names


class OneOnuView(SmartOltView):
    """One ONU by its external id."""

    shape: Callable[[OnuRow], Shaped] = staticmethod(smartolt.answer_details)

    def get(self, request: Request, external_id: str) -> Response:
        refuse_parameters(request)
        found = self.find_rows(external_id)
        if len(found) > 1:
            places = ", ".join(row.place_id for row in found)
            raise SeveralOnus(
                _("Several ONUs have this serial. Use the place instead: %(places)s.") % {"places": places}
            )
        return succeeded(**self.shape(found[0]))

    def find_rows(self, external_id: str) -> list[OnuRow]:
        """Return up to ten ONUs in scope, at least one, or raise."""
        condition = smartolt.of_external_id(external_id)
        onus = smartolt.select_onus(self.scope.condition(), condition) if condition is not None else None
        rows = smartolt.load_rows(onus[:10]) if onus is not None else []
        if not rows:
            raise NotFound(_("There is no ONU with this id."))
        return rows


class DetailsBySerialView(OneOnuView):
    def get(self, request: Request, external_id: str) -> Response:
        """Return all ONUs with a serial; usually one."""
        refuse_parameters(request)
        return succeeded(onus=list(map(smartolt.shape_details, self.find_rows(external_id))))


# As SmartOLT has them, without a slash at the end.
smartolt_calls = [
    path(address, view, name=f"smartolt-{name}")
    for address, name, view in (
        ("system/get_olts", "olts", ListView.as_view()),
        ("system/get_zones", "zones", ListView.as_view(load=load_zones)),
        ("system/get_odbs/<int:zone_id>", "odbs", BoxesView.as_view()),
        ("system/get_olt_pon_ports_details/<int:olt_id>", "ports", ListView.as_view(load=smartolt.load_ports)),
        ("system/get_outage_pons/<int:olt_id>", "outage-ports", ListView.as_view(load=smartolt.load_outage_ports)),
        ("olt/get_olts_uptime_and_env_temperature", "uptimes", ListView.as_view(load=smartolt.load_uptimes)),
        ("onu/get_onus_statuses", "statuses", OnuListView.as_view(shape=smartolt.shape_status)),
        ("onu/get_onus_signals", "signals", OnuListView.as_view(shape=smartolt.shape_signal)),
        ("onu/get_onus_administrative_statuses", "admin-statuses", OnuListView.as_view(shape=smartolt.shape_admin)),
        ("onu/get_all_onus_details", "all-details", AllDetailsView.as_view()),
        ("onu/get_all_onus_gps_coordinates", "points", OnuListView.as_view(shape=smartolt.shape_point, key="onus")),
        ("onu/unconfigured_onus", "waiting", WaitingView.as_view()),
        ("onu/unconfigured_onus_for_olt/<int:olt_id>", "waiting-of-olt", WaitingView.as_view()),
        ("onu/get_onu_status/<str:external_id>", "status", OneOnuView.as_view(shape=smartolt.answer_status)),
        ("onu/get_onu_signal/<str:external_id>", "signal", OneOnuView.as_view(shape=smartolt.answer_signal)),
        ("onu/get_onu_administrative_status/<str:external_id>", "admin-status", OneOnuView.as_view(shape=answer_admin)),
        ("onu/get_onu_details/<str:external_id>", "details", OneOnuView.as_view()),
        ("onu/get_onus_details_by_sn/<str:external_id>", "by-serial", DetailsBySerialView.as_view()),
        ("<path:call>", "other", OtherCallView.as_view()),
    )
]
