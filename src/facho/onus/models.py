"""PON ports, ONUs with customers, latest readings and raw values, their events and outages, and what polls remember."""

import re
from urllib.parse import quote

from django.conf import settings
from django.db import models
from django.db.models import F, Q, Value
from django.db.models.functions import Replace
from django.utils.translation import gettext_lazy as _

from facho.accounts.models import Acknowledgeable
from facho.hosts.models import Olt
from facho.onus import history_models  # noqa: F401 Django looks for models here
from facho.onus.words import AdminStates, DownCauses, EventKinds, OutageCauses, OutageScopes, RunStateChoice
from facho.polling.domain.onu_events import FLAP_CHANGES
from facho.polling.vendors.decoders import encode_serial

__all__ = [
    "CUSTOMER_TEXTS",
    "OltMemory",
    "Onu",
    "OnuCustomer",
    "OnuData",
    "OnuEvent",
    "OnuReading",
    "Outage",
    "PonPort",
    "RunStateChoice",
]
# Shown for a port that the OLT does not report.
UNKNOWN_PORT = "?"
GPON_SERIAL_OCTETS = 8
_ACS_PLACE = re.compile(r"\{(\w+)\}")
# What people write about a customer, and search for.
CUSTOMER_TEXTS = ("label", "address", "phone", "notes", "tags", "contract")
# What people write between the digits of a telephone number.
_PHONE_SIGNS = " -()+./"


def _digits_of(column: str) -> Replace:
    digits = Replace(F(column), Value(_PHONE_SIGNS[0]), Value(""))
    for sign in _PHONE_SIGNS[1:]:
        digits = Replace(digits, Value(sign), Value(""))
    return digits


class OnuCustomer(models.Model):
    """Customer data of an ONU; it follows the ONU to other ports."""

    onu = models.OneToOneField(
        "onus.Onu", on_delete=models.CASCADE, primary_key=True, related_name="customer", verbose_name=_("ONU")
    )
    label = models.CharField(_("label"), max_length=120, blank=True, help_text=_("Name or number of the customer."))
    address = models.CharField(_("address"), max_length=255, blank=True)
    phone = models.CharField(_("phone"), max_length=40, blank=True)
    notes = models.CharField(_("notes"), max_length=1000, blank=True)
    tags = models.CharField(_("tags"), max_length=255, blank=True, help_text=_("Separated by commas."))
    contract = models.CharField(_("contract number"), max_length=60, blank=True, default="", db_default="")
    latitude = models.FloatField(_("latitude"), null=True, blank=True)
    longitude = models.FloatField(_("longitude"), null=True, blank=True)
    # Searched by its digits alone; the database writes it, so that no writer can forget it.
    phone_digits = models.GeneratedField(
        expression=_digits_of("phone"), output_field=models.CharField(max_length=40), db_persist=True
    )
    updated_at = models.DateTimeField(_("updated"), auto_now=True)

    class Meta:
        db_table = "onu_customers"
        verbose_name = _("customer")
        verbose_name_plural = _("customers")
        indexes = [models.Index(fields=["label"], name="onu_customer_label")]
        constraints = [
            models.CheckConstraint(
                condition=Q(latitude__isnull=True, longitude__isnull=True)
                | Q(latitude__range=(-90, 90), longitude__range=(-180, 180)),
                name="customer_is_on_earth",
            )
        ]

    def __str__(self) -> str:
        return self.label

    @property
    def tag_list(self) -> list[str]:
        return [tag for tag in self.tags.split(", ") if tag]


class Outage(Acknowledgeable):
    """An outage of a port, a card, an OLT or the poller's own network. Place numbers outside its scope are 0."""

    scope = models.CharField(_("scope"), max_length=8, choices=OutageScopes.choices)
    olt = models.ForeignKey(
        "hosts.Olt",
        on_delete=models.CASCADE,
        related_name="outages",
        db_index=False,
        null=True,
        blank=True,
        verbose_name=_("OLT"),
        help_text=_("Empty: the poller's network."),
    )
    frame = models.PositiveSmallIntegerField(_("frame"), default=0)
    slot = models.PositiveSmallIntegerField(_("slot"), default=0)
    port = models.PositiveSmallIntegerField(_("port"), default=0)
    cause = models.CharField(_("probable cause"), max_length=8, choices=OutageCauses.choices)
    started_at = models.DateTimeField(_("start"))
    # Later than the start when it came back soon after its end.
    resumed_at = models.DateTimeField(_("last start"))
    ended_at = models.DateTimeField(_("end"), null=True, blank=True)
    # Pairs of end and return, as ISO times: when a recurring outage was over in between.
    breaks = models.JSONField(_("breaks"), default=list, blank=True, editable=False)
    affected = models.PositiveIntegerField(_("ONUs affected"))
    down = models.PositiveIntegerField(_("ONUs down"))
    affected_olts = models.PositiveIntegerField(_("OLTs affected"), default=0)
    part_of = models.ForeignKey(
        "self", on_delete=models.SET_NULL, related_name="parts", null=True, blank=True, verbose_name=_("part of")
    )

    class Meta:
        db_table = "outages"
        verbose_name = _("outage")
        verbose_name_plural = _("outages")
        ordering = ["-started_at", "-id"]
        indexes = [
            models.Index(fields=["olt", "ended_at"], name="outage_of_olt"),
            models.Index(fields=["ended_at"], name="outage_end"),
            models.Index(fields=["started_at"], name="outage_start"),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["olt", "scope", "frame", "slot", "port"],
                condition=Q(ended_at__isnull=True),
                name="one_open_outage_per_place",
            ),
            # No OLT: a NULL, which the constraint above does not compare.
            models.UniqueConstraint(
                fields=["scope"],
                condition=Q(ended_at__isnull=True, olt__isnull=True),
                name="one_open_outage_of_the_network",
            ),
            models.CheckConstraint(
                condition=Q(scope=OutageScopes.NETWORK, olt__isnull=True)
                | (~Q(scope=OutageScopes.NETWORK) & Q(olt__isnull=False)),
                name="outage_has_an_olt",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.get_scope_display()} {self.place}".rstrip()

    @property
    def place(self) -> str:
        numbers = {OutageScopes.PON: 3, OutageScopes.CARD: 2}.get(OutageScopes(self.scope), 0)
        return "/".join(str(number) for number in (self.frame, self.slot, self.port)[:numbers])

    @property
    def lasted_seconds(self) -> float:
        """0 while it still lasts."""
        return (self.ended_at - self.started_at).total_seconds() if self.ended_at else 0.0

    @property
    def is_unasked(self) -> bool:
        """Whether its end is unknown because its OLT was disabled first."""
        return not self.ended_at and self.olt is not None and not self.olt.enabled


def name_port(frame: int, slot: int, port: int, *, is_known: bool) -> str:
    return f"{frame}/{slot}/{port}" if is_known else UNKNOWN_PORT


class PonPort(models.Model):
    """A PON port by its place, or the placeholder for ONUs whose port is unknown."""

    olt = models.ForeignKey(Olt, on_delete=models.CASCADE, related_name="pon_ports", verbose_name=_("OLT"))
    frame = models.PositiveSmallIntegerField(_("frame"))
    slot = models.PositiveSmallIntegerField(_("slot"))
    port = models.PositiveSmallIntegerField(_("port"))
    # False where all ONUs of an OLT stand that does not tell their ports: no fibre is shared because of it.
    is_known = models.BooleanField(_("known"), default=True, db_default=True)
    created_at = models.DateTimeField(_("created"), auto_now_add=True)

    class Meta:
        verbose_name = _("PON port")
        verbose_name_plural = _("PON ports")
        ordering = ["olt", "frame", "slot", "port"]
        constraints = [models.UniqueConstraint(fields=["olt", "frame", "slot", "port"], name="one_row_per_pon_port")]

    def __str__(self) -> str:
        return name_port(self.frame, self.slot, self.port, is_known=self.is_known)


class Onu(models.Model):
    """An ONU by serial and place, as its OLT reports it. Values that change often are in OnuReading."""

    olt = models.ForeignKey(Olt, on_delete=models.CASCADE, related_name="onus", verbose_name=_("OLT"))
    pon_port = models.ForeignKey(PonPort, on_delete=models.CASCADE, related_name="onus", verbose_name=_("PON port"))
    onu_id = models.PositiveIntegerField(_("ONU id"))
    serial = models.CharField(_("serial"), max_length=32, blank=True)
    mac = models.CharField(_("hardware address"), max_length=17, blank=True)
    description = models.CharField(_("description"), max_length=255, blank=True)
    name = models.CharField(_("name"), max_length=255, blank=True)
    model = models.CharField(_("model"), max_length=60, blank=True)
    firmware = models.CharField(_("firmware"), max_length=60, blank=True)
    admin_state = models.CharField(_("admin state"), max_length=8, choices=AdminStates.choices, blank=True)
    is_present = models.BooleanField(_("present"), default=True)
    first_seen_at = models.DateTimeField(_("first seen"))
    absent_since = models.DateTimeField(_("absent since"), null=True, blank=True)
    # Walks that showed that it is not where it was; until one finds it, what is read there may be another's.
    misses = models.PositiveSmallIntegerField(_("misses"), default=0)
    # The latest of them: walks that are close together count as one.
    missed_at = models.DateTimeField(_("last miss"), null=True, blank=True)

    class Meta:
        verbose_name = _("ONU")
        verbose_name_plural = _("ONUs")
        ordering = ["olt", "pon_port", "onu_id"]
        indexes = [
            # With the id behind, because lists are sorted so: many have no serial, one description or one first walk.
            models.Index(fields=["serial", "id"], name="onu_serial"),
            models.Index(fields=["olt", "serial"], name="onu_olt_serial"),
            models.Index(fields=["description", "id"], name="onu_description"),
            models.Index(fields=["first_seen_at", "id"], name="onu_first_seen"),
            # Devices of GPON have none.
            models.Index(fields=["mac", "id"], name="onu_mac", condition=~Q(mac="")),
            models.Index(fields=["absent_since"], name="onu_absent", condition=Q(is_present=False)),
        ]
        constraints = [
            # A place holds one present ONU; those that left keep their row and their history.
            models.UniqueConstraint(
                fields=["pon_port", "onu_id"], condition=Q(is_present=True), name="one_present_onu_per_place"
            ),
            models.CheckConstraint(
                condition=Q(is_present=True, absent_since__isnull=True)
                | Q(is_present=False, absent_since__isnull=False),
                name="absent_onu_has_a_time",
            ),
        ]

    def __str__(self) -> str:
        return self.serial or f"{self.pon_port}/{self.onu_id}"

    @property
    def identified_by(self) -> str:
        """By what it is known again: its serial, its hardware address, or only its place."""
        return "serial" if self.serial else "mac" if self.mac else "place"

    @property
    def acs_url(self) -> str:
        """Its page on the ACS, by the template of the settings; empty if it lacks what the template names."""
        template: str = settings.FACHO_ACS_URL
        if not template:
            return ""
        # Another sign could end a filter that the template puts the serial into.
        serial = self.serial if self.serial.isascii() and self.serial.isalnum() else ""
        octets = encode_serial(serial)
        is_gpon = len(octets) == GPON_SERIAL_OCTETS and octets != serial.encode()
        values = {"serial": serial, "serial_hex": octets.hex().upper() if is_gpon else "", "mac": self.mac}
        if not all(values.get(place) for place in _ACS_PLACE.findall(template)):
            return ""
        return _ACS_PLACE.sub(lambda place: quote(values[place[1]], safe=""), template)


class OnuReading(models.Model):
    """The latest state and light of an ONU: narrow and without text indexes, since every poll updates it."""

    onu = models.OneToOneField(
        Onu, on_delete=models.CASCADE, primary_key=True, related_name="reading", verbose_name=_("ONU")
    )
    run_state = models.CharField(
        _("state"), max_length=8, choices=RunStateChoice.choices, default=RunStateChoice.UNKNOWN
    )
    # None for an ONU that was already down at the first read.
    state_since = models.DateTimeField(_("state since"), null=True, blank=True)
    last_down_cause = models.CharField(_("last down cause"), max_length=20, choices=DownCauses.choices, blank=True)
    # By the clock of the OLT.
    last_up_at = models.DateTimeField(_("last up"), null=True, blank=True)
    last_down_at = models.DateTimeField(_("last down"), null=True, blank=True)
    distance_m = models.PositiveIntegerField(_("distance (m)"), null=True, blank=True)
    # Hundredths of a dBm: exact, and what the devices send.
    rx_power_cdbm = models.SmallIntegerField(_("receive power (0.01 dBm)"), null=True, blank=True)
    tx_power_cdbm = models.SmallIntegerField(_("transmit power (0.01 dBm)"), null=True, blank=True)
    olt_rx_power_cdbm = models.SmallIntegerField(_("receive power at the OLT (0.01 dBm)"), null=True, blank=True)
    temperature_tenths = models.SmallIntegerField(_("temperature (0.1 °C)"), null=True, blank=True)
    voltage_mv = models.PositiveIntegerField(_("voltage (mV)"), null=True, blank=True)
    bias_ua = models.PositiveIntegerField(_("laser bias (µA)"), null=True, blank=True)
    # When this light was first read; later reads had the same value.
    power_at = models.DateTimeField(_("power read"), null=True, blank=True)

    # State of the rules in `polling.domain`.
    power_reference_cdbm = models.SmallIntegerField(null=True, blank=True)
    power_reference_at = models.DateTimeField(null=True, blank=True)
    flap_changes = models.PositiveSmallIntegerField(default=0)
    flap_since = models.DateTimeField(null=True, blank=True)
    outage = models.ForeignKey(
        Outage,
        on_delete=models.SET_NULL,
        related_name="readings",
        db_index=False,
        null=True,
        blank=True,
        verbose_name=_("latest outage"),
    )

    class Meta:
        verbose_name = _("ONU reading")
        verbose_name_plural = _("ONU readings")
        indexes = [
            # Lists are narrowed and sorted by these. On PostgreSQL a migration leaves ONUs online out of the first:
            # the second soon finds some, and each index is written for every ONU whose light has moved.
            models.Index(fields=["run_state", "rx_power_cdbm", "onu"], name="onu_reading_state"),
            models.Index(fields=["rx_power_cdbm", "onu"], name="onu_reading_power"),
            models.Index(
                fields=["last_down_cause", "run_state", "onu"],
                name="onu_reading_cause",
                condition=~Q(last_down_cause=""),
            ),
            # On PostgreSQL the migration makes it with nulls first, the order that SQLite has by itself.
            models.Index(fields=["state_since", "onu"], name="onu_reading_since"),
            # Most were never in an outage.
            models.Index(fields=["outage"], name="onu_reading_outage", condition=Q(outage__isnull=False)),
        ]

    def __str__(self) -> str:
        return f"{self.onu_id}: {self.run_state}"

    @property
    def rx_power_dbm(self) -> float | None:
        return _units(self.rx_power_cdbm, 100)

    @property
    def tx_power_dbm(self) -> float | None:
        return _units(self.tx_power_cdbm, 100)

    @property
    def olt_rx_power_dbm(self) -> float | None:
        return _units(self.olt_rx_power_cdbm, 100)

    @property
    def temperature_celsius(self) -> float | None:
        return _units(self.temperature_tenths, 10)

    @property
    def voltage_v(self) -> float | None:
        return _units(self.voltage_mv, 1000)

    @property
    def bias_ma(self) -> float | None:
        return _units(self.bias_ua, 1000)

    @property
    def is_flapping(self) -> bool:
        return self.flap_changes > FLAP_CHANGES


def _units(steps: int | None, per_unit: int) -> float | None:
    return None if steps is None else steps / per_unit


class OnuData(models.Model):
    """The latest raw values of an OLT's ONUs for one OID, as a block of `raw_values.py`."""

    olt = models.ForeignKey(
        Olt, on_delete=models.CASCADE, related_name="onu_data", db_index=False, verbose_name=_("OLT")
    )
    oid = models.CharField(_("OID"), max_length=255)
    block = models.BinaryField()
    onus = models.PositiveIntegerField(_("ONUs"))
    updated_at = models.DateTimeField(_("updated"))

    class Meta:
        db_table = "onu_data"
        verbose_name = _("ONU value")
        verbose_name_plural = _("ONU values")
        ordering = ["olt", "oid"]
        constraints = [models.UniqueConstraint(fields=["olt", "oid"], name="one_block_per_olt_and_oid")]

    def __str__(self) -> str:
        return f"{self.olt_id} · {self.oid}"


class OltMemory(models.Model):
    """State of an OLT kept between polls, so that a restart continues where it was."""

    olt = models.OneToOneField(
        Olt, on_delete=models.CASCADE, primary_key=True, related_name="memory", verbose_name=_("OLT")
    )
    # Until the first complete walk, ONUs found are not new.
    walked_at = models.DateTimeField(_("last complete walk"), null=True, blank=True)
    held_at = models.DateTimeField(
        _("walk held back"),
        null=True,
        blank=True,
        help_text=_("A walk missed most of the ONUs at once; it takes effect when the next walk confirms it."),
    )
    states_at = models.DateTimeField(_("states read"), null=True, blank=True)

    class Meta:
        db_table = "olt_memory"
        verbose_name = _("OLT polling state")
        verbose_name_plural = _("OLT polling states")

    def __str__(self) -> str:
        return str(self.olt_id)


class OnuEvent(models.Model):
    """One event of an ONU. Never updated, except for a cause reported later.

    `before` and `after` are descriptions, powers in dBm or states, depending on the kind.
    """

    olt = models.ForeignKey(
        "hosts.Olt", on_delete=models.CASCADE, related_name="onu_events", db_index=False, verbose_name=_("OLT")
    )
    pon_port = models.ForeignKey(
        "onus.PonPort", on_delete=models.CASCADE, related_name="events", db_index=False, verbose_name=_("PON port")
    )
    onu = models.ForeignKey(
        "onus.Onu", on_delete=models.CASCADE, related_name="events", db_index=False, verbose_name=_("ONU")
    )
    onu_number = models.PositiveIntegerField(_("ONU id"), help_text=_("The ONU's number at the port, at that time."))
    at = models.DateTimeField(_("time"))
    kind = models.CharField(_("event"), max_length=20, choices=EventKinds.choices)
    cause = models.CharField(_("cause"), max_length=20, choices=DownCauses.choices, blank=True)
    # Where it came from, or who else has its serial or hardware address.
    other_port = models.ForeignKey(
        "onus.PonPort",
        on_delete=models.CASCADE,
        related_name="events_elsewhere",
        db_index=False,
        null=True,
        blank=True,
        verbose_name=_("other PON port"),
    )
    other_number = models.PositiveIntegerField(_("other ONU id"), null=True, blank=True)
    before = models.CharField(_("before"), max_length=255, blank=True)
    after = models.CharField(_("after"), max_length=255, blank=True)

    class Meta:
        db_table = "onu_events"
        verbose_name = _("ONU event")
        verbose_name_plural = _("ONU events")
        ordering = ["-at", "-id"]
        indexes = [
            models.Index(fields=["onu", "at"], name="onu_event_of_onu"),
            models.Index(fields=["pon_port", "at"], name="onu_event_of_port"),
            models.Index(fields=["olt", "at"], name="onu_event_of_olt"),
            models.Index(fields=["at"], name="onu_event_time"),
            # Some kinds are so rare that looking for them by the time would read everything.
            models.Index(fields=["kind", "at"], name="onu_event_of_kind"),
            # Few events have another port: an ONU that moved belongs to the timelines of both.
            models.Index(
                fields=["other_port", "at"], name="onu_event_of_other_port", condition=Q(other_port__isnull=False)
            ),
        ]

    def __str__(self) -> str:
        return f"{self.at:%Y-%m-%d %H:%M} {self.onu_id} {self.kind}"
