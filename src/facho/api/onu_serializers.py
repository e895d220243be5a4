"""The shape in which the API shows an ONU, on a page and in an export."""

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from facho.onus.customers import FIELDS
from facho.onus.models import Onu, OnuCustomer
from facho.onus.shown_state import last_known_state, shown_state
from facho.onus.words import RunState, ShownState


class CustomerSerializer(serializers.ModelSerializer[OnuCustomer]):
    """What people wrote about the customer."""

    class Meta:
        model = OnuCustomer
        fields = FIELDS


def _read(kind: type[serializers.Field[Any, Any, Any, Any]], name: str) -> Any:
    """Show a value of the ONU's reading; null until there is one."""
    return kind(source=f"reading.{name}", default=None, allow_null=True)


class OnuSerializer(serializers.ModelSerializer[Onu]):
    """An ONU by serial and place, with its customer and its latest values.

    `run_state` is what may be said now: unknown behind an OLT that does not answer, absent when it has left.
    `last_known_state` is what the OLT said last. `last_up_at` and `last_down_at` are by the clock of the OLT.
    """

    olt_id = serializers.IntegerField()
    olt = serializers.CharField(source="olt.name")
    pon_port_id = serializers.IntegerField()
    pon_port = serializers.CharField(source="pon_port.__str__")
    frame = serializers.IntegerField(source="pon_port.frame")
    slot = serializers.IntegerField(source="pon_port.slot")
    port = serializers.IntegerField(source="pon_port.port")
    run_state = serializers.SerializerMethodField()
    last_known_state = serializers.SerializerMethodField()
    state_since = _read(serializers.DateTimeField, "state_since")
    last_down_cause = _read(serializers.CharField, "last_down_cause")
    last_up_at = _read(serializers.DateTimeField, "last_up_at")
    last_down_at = _read(serializers.DateTimeField, "last_down_at")
    is_flapping = _read(serializers.BooleanField, "is_flapping")
    outage_id = _read(serializers.IntegerField, "outage_id")
    distance_m = _read(serializers.IntegerField, "distance_m")
    rx_power_dbm = _read(serializers.FloatField, "rx_power_dbm")
    tx_power_dbm = _read(serializers.FloatField, "tx_power_dbm")
    olt_rx_power_dbm = _read(serializers.FloatField, "olt_rx_power_dbm")
    power_at = _read(serializers.DateTimeField, "power_at")
    temperature_celsius = _read(serializers.FloatField, "temperature_celsius")
    voltage_v = _read(serializers.FloatField, "voltage_v")
    bias_ma = _read(serializers.FloatField, "bias_ma")
    customer = CustomerSerializer(default=None, allow_null=True)

    class Meta:
        model = Onu
        fields = [
            "id",
            "olt_id",
            "olt",
            "pon_port_id",
            "pon_port",
            "frame",
            "slot",
            "port",
            "onu_id",
            "serial",
            "mac",
            "description",
            "name",
            "model",
            "firmware",
            "admin_state",
            "is_present",
            "first_seen_at",
            "absent_since",
            "run_state",
            "last_known_state",
            "state_since",
            "last_down_cause",
            "last_up_at",
            "last_down_at",
            "is_flapping",
            "outage_id",
            "distance_m",
            "rx_power_dbm",
            "tx_power_dbm",
            "olt_rx_power_dbm",
            "power_at",
            "temperature_celsius",
            "voltage_v",
            "bias_ma",
            "customer",
        ]

    @extend_schema_field(serializers.ChoiceField(choices=ShownState.choices))
    def get_run_state(self, onu: Onu) -> str:
        """Tell what may be said of it now."""
        return shown_state(onu).value

    @extend_schema_field(serializers.ChoiceField(choices=RunState.choices))
    def get_last_known_state(self, onu: Onu) -> str:
        """Tell what its OLT said last."""
        return last_known_state(onu).value
