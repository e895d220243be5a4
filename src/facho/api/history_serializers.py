"""The shapes of history: what can be asked, and how thousands of values are written without an object for each."""

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.exceptions import ValidationError

from facho.onus.history import PortSeries, Series
from facho.onus.history_metrics import Floats, Ints
from facho.onus.history_read_model import DETAILS, METRICS, UNITS, Detail

Fields: TypeAlias = dict[str, "serializers.Field[Any, Any, Any, Any]"]

_NO_TIME = gettext_lazy("Write a time such as 2030-05-06T12:00:00Z.")


class WordField(serializers.ChoiceField):
    """One of a few words; who writes another is told which there are."""

    def to_internal_value(self, data: Any) -> Any:
        """Accept one of the words."""
        if data not in self.choices:
            raise ValidationError(_("Choose one of: %(values)s.") % {"values": ", ".join(map(str, self.choices))})
        return data


class SpanQuestionSerializer(serializers.Serializer[Any]):
    """Which time is wanted, and how closely: `to` is now unless given, and `from` a day before it."""

    resolution = WordField(choices=[detail.value for detail in Detail], default=Detail.AUTO.value)

    def get_fields(self) -> Fields:
        """Add the times; one of them has a name that Python keeps for itself."""
        return {**super().get_fields(), "from": _moment(), "to": _moment()}


class HistoryQuestionSerializer(SpanQuestionSerializer):
    """What is wanted of ONUs."""

    metric = WordField(choices=list(METRICS), default="rx_power")


class ValueQuestionSerializer(SpanQuestionSerializer):
    """What is wanted of an ONU's own OIDs."""

    oid = serializers.CharField(max_length=255)


class OltValueQuestionSerializer(ValueQuestionSerializer):
    """What is wanted of an OLT; `index` is the row of a table, and empty for a single value."""

    index = serializers.CharField(max_length=128, default="")


class SpanSerializer(serializers.Serializer[Any]):
    """What is shown: the resolution that was taken, and the time."""

    resolution = serializers.ChoiceField(choices=[detail.value for detail in DETAILS.values()])

    def get_fields(self) -> Fields:
        """Add the times; one of them has a name that Python keeps for itself."""
        return {"from": serializers.DateTimeField(), "to": serializers.DateTimeField(), **super().get_fields()}


class HistorySerializer(SpanSerializer):
    """A metric in its unit."""

    metric = serializers.ChoiceField(choices=list(METRICS))
    unit = serializers.ChoiceField(choices=sorted({unit.value for unit in UNITS.values()}))


class PointSerializer(serializers.Serializer[Any]):
    """`value` is a sample, or the average of an hour or a day that begins then, with `min` and `max`; null is a gap."""

    at = serializers.DateTimeField()
    value = serializers.FloatField(allow_null=True)
    min = serializers.FloatField(allow_null=True, required=False)
    max = serializers.FloatField(allow_null=True, required=False)


@extend_schema_field(PointSerializer(many=True))
class PointsField(serializers.Field[Any, Any, Any, Any]):
    """The points of one ONU."""

    def to_representation(self, value: Series) -> list[dict[str, Any]]:
        """Write an object for each point."""
        columns: dict[str, Sequence[Any]] = {"at": _times(value.at), "value": _numbers(value.average)}
        if self.context["is_summed_up"]:
            columns |= {"min": _numbers(value.lowest), "max": _numbers(value.highest)}
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


class OnuHistorySerializer(HistorySerializer):
    """One metric of an ONU, wherever it was plugged in; a state is the share of samples online, in percent."""

    onu_id = serializers.IntegerField()
    points = PointsField()


class ValueHistorySerializer(SpanSerializer):
    """The history of an OID that a job keeps; without points nobody wanted it kept, or nothing came."""

    oid = serializers.CharField()
    name = serializers.CharField(allow_blank=True)
    unit = serializers.CharField(allow_blank=True)
    points = PointsField()


class OnuValueHistorySerializer(ValueHistorySerializer):
    """One OID of an ONU."""

    onu_id = serializers.IntegerField()


class OltValueHistorySerializer(ValueHistorySerializer):
    """One value of an OLT, or one row of a table; of a counter the points are its growth in a second."""

    olt_id = serializers.IntegerField()
    index = serializers.CharField(allow_blank=True)
    place = serializers.CharField(allow_blank=True)


class PortOnuSerializer(serializers.Serializer[Any]):
    """One ONU's values at the times of its port, null where there is a gap; hours and days have `min` and `max`."""

    onu_id = serializers.IntegerField()
    onu = serializers.CharField(allow_blank=True)
    value = serializers.ListField(child=serializers.FloatField(allow_null=True))
    min = serializers.ListField(child=serializers.FloatField(allow_null=True), required=False)
    max = serializers.ListField(child=serializers.FloatField(allow_null=True), required=False)


@extend_schema_field(PortOnuSerializer(many=True))
class PortOnusField(serializers.Field[Any, Any, Any, Any]):
    """The ONUs that were at a port, each with its row of values."""

    def to_representation(self, value: PortSeries) -> list[dict[str, Any]]:
        """Write an object for each ONU."""
        names = self.context["names"]
        layers = {"value": value.average}
        if self.context["is_summed_up"]:
            layers |= {"min": value.lowest, "max": value.highest}
        return [
            {"onu_id": onu_id, "onu": names.get(onu_id, "")}
            | {name: _numbers(layer[number]) for name, layer in layers.items()}
            for number, onu_id in enumerate(value.onu_ids.tolist())
        ]


@extend_schema_field(serializers.ListField(child=serializers.DateTimeField()))
class TimesField(serializers.Field[Any, Any, Any, Any]):
    """Times that several rows share."""

    def to_representation(self, value: Ints) -> list[str]:
        """Write them as text."""
        return _times(value)


class PortHistorySerializer(HistorySerializer):
    """One metric of all ONUs that were at a PON port, at times that they share."""

    pon_port_id = serializers.IntegerField()
    at = TimesField()
    onus = PortOnusField()


def _moment() -> serializers.DateTimeField:
    errors: dict[str, Any] = dict.fromkeys(("invalid", "overflow", "make_aware", "date"), _NO_TIME)
    return serializers.DateTimeField(required=False, error_messages=errors)


def _times(at: Ints) -> list[str]:
    texts: list[str] = np.datetime_as_string(at.astype("datetime64[s]"), timezone="UTC").tolist()
    return texts


def _numbers(values: Floats) -> list[float | None]:
    return [None if value != value else value for value in values.tolist()]
