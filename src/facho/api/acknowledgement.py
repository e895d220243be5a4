"""Taking note of what is wrong, over the API: by operators and admins, in the name of whoever asks."""

from typing import TYPE_CHECKING, Any

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from facho.accounts.acknowledge import MAX_NOTE_LENGTH, AcknowledgementError, acknowledge, take_back
from facho.api.problems import Conflict

if TYPE_CHECKING:
    from rest_framework.viewsets import GenericViewSet

    _Views = GenericViewSet[Any]
else:
    _Views = object  # joined to a view set, whose stubs alone take type parameters


class NoteSerializer(serializers.Serializer[Any]):
    """What somebody who takes note wants others to know."""

    note = serializers.CharField(max_length=MAX_NOTE_LENGTH, allow_blank=True, default="")


class Acknowledgement(_Views):
    """Adds `acknowledge` to what is wrong."""

    @extend_schema(request=NoteSerializer)
    @action(detail=True, methods=["post"])
    def acknowledge(self, request: Request, pk: str) -> Response:
        """Take note in your name, with a note for others; a conflict says that somebody else did."""
        wish = NoteSerializer(data=request.data)
        wish.is_valid(raise_exception=True)
        thing = self.get_object()
        try:
            acknowledge(thing, request.user, wish.validated_data["note"], now=timezone.now())
        except AcknowledgementError as error:
            raise Conflict(str(error)) from error
        return Response(self.get_serializer(thing).data)

    @extend_schema(request=None)
    @acknowledge.mapping.delete
    def take_back(self, request: Request, pk: str) -> Response:
        """Take back an acknowledgement, yours or another's."""
        thing = self.get_object()
        try:
            take_back(thing, request.user)
        except AcknowledgementError as error:
            raise Conflict(str(error)) from error
        return Response(self.get_serializer(thing).data)
