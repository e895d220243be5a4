"""Bodies of write requests. Unknown names are refused, in the query and the body, nested ones too:
a mistyped or read-only field must not look as if it had been saved.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from django.utils.translation import gettext as _
from rest_framework import serializers
from rest_framework.exceptions import ErrorDetail, UnsupportedMediaType, ValidationError
from rest_framework.request import Request

from facho.api.shared.filters import refuse_parameters

if TYPE_CHECKING:
    _Serializer = serializers.Serializer[Any]
else:
    _Serializer = object  # joined to a serializer, whose stubs alone take type parameters


# An answer is not to grow with what somebody sends.
MOST_NAMES = 20
MOST_LETTERS = 60


class KnownFields(_Serializer):
    """Reports unknown fields together with all other errors."""

    def to_internal_value(self, data: Any) -> Any:
        unknown = self._unknown(data) if isinstance(data, Mapping) else {}
        try:
            values = super().to_internal_value(data)
        except ValidationError as error:
            raise ValidationError({**unknown, **error.detail} if unknown else error.detail) from error  # type: ignore[dict-item]
        if unknown:
            raise ValidationError(unknown)
        return values

    def _unknown(self, data: Mapping[str, Any]) -> dict[str, list[ErrorDetail]]:
        known = sorted(name for name, field in self.fields.items() if not field.read_only)
        text = _("Unknown field. Known fields: %(names)s.") % {"names": ", ".join(known)}
        text = text if known else _("This address takes no body.")
        names = [str(name) for name in data if name not in known]
        # JSON may contain lone surrogates.
        shown = (
            "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in name[:MOST_LETTERS])
            for name in names[:MOST_NAMES]
        )
        return {name: [ErrorDetail(text, "unknown")] for name in shown}


class Nothing(KnownFields, serializers.Serializer[Any]):
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
