"""What views and shapes of the API share: known names, the scope of the user, writing with audit, acknowledging.

Bodies of write requests refuse unknown names, in the query and the body, nested ones too: a mistyped or read-only field
must not look as if it had been saved.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

from django.db import transaction
from django.db.models import Model, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import mixins, serializers, status
from rest_framework.decorators import action
from rest_framework.exceptions import ErrorDetail, NotFound, UnsupportedMediaType
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView
from rest_framework.viewsets import GenericViewSet

from facho.accounts.acknowledge import MAX_NOTE_LENGTH, AcknowledgementError, acknowledge, take_back
from facho.accounts.audit import Action, changed_words, record
from facho.accounts.scope import scope_of
from facho.alerts.channels import ChannelSecrets
from facho.api.shared.filters import refuse_parameters
from facho.api.shared.problems import Conflict, collisions_are_conflicts
from facho.infrastructure.secrets import Secret

Row = TypeVar("Row", bound=Model)

# An answer is not to grow with what somebody sends.
MOST_NAMES = 20
MOST_LETTERS = 60


class KnownFields(serializers.Serializer[Any]):
    """Reports unknown fields together with all other errors."""

    def to_internal_value(self, data: Any) -> Any:
        unknown = self._unknown(data) if isinstance(data, Mapping) else {}
        try:
            values = super().to_internal_value(data)
        except serializers.ValidationError as error:
            raise serializers.ValidationError({**unknown, **error.detail} if unknown else error.detail) from error  # type: ignore[dict-item]
        if unknown:
            raise serializers.ValidationError(unknown)
        return values

    def _unknown(self, data: Mapping[str, Any]) -> dict[str, list[ErrorDetail]]:
        known = sorted(name for name, field in self.fields.items() if not field.read_only)
        text = _("Unknown field. Known fields: %(names)s.") % {"names": ", ".join(known)}
        text = text if known else _("This address accepts no body.")
        names = [str(name) for name in data if name not in known]
        # JSON may contain lone surrogates.
        shown = (
            "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in name[:MOST_LETTERS])
            for name in names[:MOST_NAMES]
        )
        return {name: [ErrorDetail(text, "unknown")] for name in shown}


class Nothing(KnownFields):
    """The body of a request that needs none."""


def read_body(request: Request) -> Any:
    """Return the body of a write request, which takes no query parameters."""
    refuse_parameters(request)
    return request.data


def read_nothing(request: Request) -> None:
    """Refuse any body; an empty form, which some clients send, is accepted."""
    try:
        sent = read_body(request)
    except UnsupportedMediaType:
        sent = request._request.POST
    Nothing(data=sent).is_valid(raise_exception=True)


def valid(wish: "serializers.BaseSerializer[Any]") -> dict[str, Any]:
    """Return what was sent, once it is checked."""
    wish.is_valid(raise_exception=True)
    values: dict[str, Any] = wish.validated_data
    return values


class RowSerializer(serializers.ModelSerializer[Row]):
    """Shows what a row refers to: by its id under names such as `olt_id`, by its name under such as `olt`."""

    def get_uniqueness_extra_kwargs(self, field_names: Any, declared_fields: Any, extra_kwargs: Any) -> Any:
        relations = {field.name for field in self.Meta.model._meta.get_fields() if field.is_relation}  # type: ignore[attr-defined]
        own = [name for name in field_names if name not in relations]
        return super().get_uniqueness_extra_kwargs(own, declared_fields, extra_kwargs)

    def build_property_field(self, field_name: str, model_class: type[Row]) -> Any:
        relations = {field.attname: field for field in model_class._meta.concrete_fields if field.is_relation}
        if relation := relations.get(field_name):
            return serializers.IntegerField, {"allow_null": True} if relation.null else {}
        return super().build_property_field(field_name, model_class)

    def build_relational_field(self, field_name: str, relation_info: Any) -> Any:
        if relation_info.to_many:
            return super().build_relational_field(field_name, relation_info)
        # Its text is what the row says of itself.
        return serializers.CharField, {"default": None, "allow_null": True} if relation_info.model_field.null else {}


class TextField(serializers.CharField):
    """What a function says of the row, in the language of the request."""

    def __init__(self, say: Callable[[Any], object]) -> None:
        super().__init__(source="*", read_only=True)
        self.say = say

    def to_representation(self, value: Any) -> str:
        return str(self.say(value))


class NoParameters(APIView):
    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        refuse_parameters(request)


class ScopedRows(GenericAPIView[Any]):
    """Limits a view's rows to OLTs in scope; others are 404."""

    # The way from a row to its OLT; empty for OLTs themselves.
    olt_path = "olt"
    # Of a single row, where it shows more.
    detail_class: type[serializers.BaseSerializer[Any]] | None = None

    def get_queryset(self) -> QuerySet[Any]:
        return scope_of(self.request.user).narrow(super().get_queryset(), self.olt_path)

    def get_serializer_class(self) -> Any:
        is_detail = self.detail_class and getattr(self, "action", "") == "retrieve"
        return self.detail_class if is_detail else super().get_serializer_class()


def must_see(request: Request, rows: QuerySet[Any], olt_path: str = "olt") -> None:
    """Raise 404 unless one of the rows exists and is in scope."""
    if not scope_of(request.user).narrow(rows, olt_path).exists():
        raise NotFound


class DeletedRows(mixins.ListModelMixin, mixins.RetrieveModelMixin, mixins.DestroyModelMixin, GenericViewSet[Any]):
    """Rows that may be deleted, with an audit entry."""

    def perform_destroy(self, instance: Model) -> None:
        read_nothing(self.request)
        with transaction.atomic():
            record(self.request.user, instance, Action.DELETED)
            instance.delete()


class WrittenRows(DeletedRows):
    """Rows that are written as `wish_class` and shown as `serializer_class`; `described` says what writing does."""

    wish_class: type[serializers.ModelSerializer[Any]]

    def create(self, request: Request) -> Response:
        return self._write(self.wish_class(data=read_body(request)), Action.ADDED, status.HTTP_201_CREATED)

    def partial_update(self, request: Request, pk: str) -> Response:
        wish = self.wish_class(self.get_object(), data=read_body(request), partial=True)
        return self._write(wish, Action.CHANGED, status.HTTP_200_OK)

    def save(self, wish: "serializers.BaseSerializer[Any]", done: Action) -> Any:
        """Save what was sent with its audit entry, in a transaction."""
        row = wish.save()
        record(self.request.user, row, done, ", ".join(sorted(wish.initial_data)))
        return row

    def _write(self, wish: "serializers.BaseSerializer[Any]", done: Action, code: int) -> Response:
        valid(wish)
        with collisions_are_conflicts(), transaction.atomic():
            row = self.save(wish, done)
        return Response(self.get_serializer(self.get_queryset().get(pk=row.pk)).data, status=code)


View = TypeVar("View", bound=type[WrittenRows])


def described(*, create: str, change: str) -> Callable[[View], View]:
    """Describe the writes of a view in the API's document."""

    def describe(view: View) -> View:
        shown: Any = view.serializer_class  # type: ignore[misc]  # generic by its stubs
        wish = view.wish_class
        return extend_schema_view(
            create=extend_schema(description=create, request=wish, responses={201: shown}),
            partial_update=extend_schema(description=change, request=wish, responses=shown),
        )(view)

    return describe


@contextmanager
def recorded(request: Request, wish: "serializers.BaseSerializer[Any]") -> Iterator[tuple[Any, dict[str, Any]]]:
    """Write what was sent of a row, with an audit entry of the differences, in one transaction."""
    values = valid(wish)
    row: Any = wish.instance
    before = {name: getattr(row, name) for name in values}
    with transaction.atomic():
        yield row, values
        record(request.user, row, Action.CHANGED, changed_words(before, values))


class AddressedSerializer(KnownFields, serializers.ModelSerializer[Row]):
    """What may be written of a channel or a webhook; a secret left out or empty keeps its stored value."""

    url = serializers.CharField(write_only=True, required=False, allow_blank=True, max_length=2_000)
    signing_key = serializers.CharField(write_only=True, required=False, allow_blank=True, max_length=500)

    def find_faults(self, attrs: dict[str, Any], given: ChannelSecrets) -> dict[str, str]:
        raise NotImplementedError

    def store(self, row: Row, given: ChannelSecrets) -> None:
        raise NotImplementedError

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        given = ChannelSecrets(Secret(attrs.pop("url", "")), Secret(attrs.pop("signing_key", "")))
        if faults := self.find_faults(attrs, given):
            raise serializers.ValidationError(faults)
        return {**attrs, "given": given}

    def save(self, **_options: Any) -> Any:
        row: Any = self.instance or self.Meta.model()  # type: ignore[misc]  # the stubs name no model
        values = dict(self.validated_data)
        given = values.pop("given")
        for name, value in values.items():
            setattr(row, name, value)
        self.store(row, given)
        return row


class NoteSerializer(KnownFields):
    """A note for the colleagues who see the acknowledgement."""

    note = serializers.CharField(max_length=MAX_NOTE_LENGTH, allow_blank=True, default="")


class AcknowledgeAction(GenericViewSet[Any]):
    @extend_schema(request=NoteSerializer)
    @action(detail=True, methods=["post"])
    def acknowledge(self, request: Request, pk: str) -> Response:
        """Acknowledge in your name, with an optional note; 409 if somebody else already did."""
        note = valid(NoteSerializer(data=read_body(request)))["note"]
        thing = self.get_object()
        try:
            acknowledge(thing, request.user, note, now=timezone.now())
        except AcknowledgementError as error:
            raise Conflict(str(error)) from error
        return Response(self.get_serializer(thing).data)

    @extend_schema(request=None)
    @acknowledge.mapping.delete
    def take_back(self, request: Request, pk: str) -> Response:
        """Withdraw an acknowledgement, yours or another user's."""
        read_nothing(request)
        thing = self.get_object()
        try:
            take_back(thing, request.user)
        except AcknowledgementError as error:
            raise Conflict(str(error)) from error
        return Response(self.get_serializer(thing).data)
