"""Which device of NetBox an OLT is; webhooks, what was sent to each, and events of outages in their order."""

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from facho.hosts.models import Olt, OltGroup
from facho.infrastructure.secrets import SecretField
from facho.onus.models import Outage
from facho.onus.words import EventKinds


class NetBoxLink(models.Model):
    """An OLT and its device in NetBox: the same ones whatever either is called later."""

    olt = models.OneToOneField(
        Olt, on_delete=models.CASCADE, primary_key=True, related_name="netbox", verbose_name=_("OLT")
    )
    device_id = models.PositiveBigIntegerField(_("device in NetBox"), unique=True)

    class Meta:
        verbose_name = _("device in NetBox")
        verbose_name_plural = _("devices in NetBox")

    def __str__(self) -> str:
        return f"{self.olt_id}: {self.device_id}"


class OutageEventKind(models.TextChoices):
    BEGAN = "outage_began", _("outage began")
    ENDED = "outage_ended", _("outage ended")


# What a webhook may be about.
WEBHOOK_KINDS = (*EventKinds.choices, *OutageEventKind.choices)


class Webhook(models.Model):
    """A program that gets events; its cursors are the last events that it accepted."""

    name = models.CharField(_("name"), max_length=60, unique=True)
    url = SecretField(_("address"))
    # What may be shown of it: which server.
    shown_as = models.CharField(_("address shown as"), max_length=300, editable=False)
    signing_key = SecretField(_("signing key"))
    kinds = models.JSONField(_("events"), default=list)
    olt_group = models.ForeignKey(
        OltGroup, on_delete=models.PROTECT, null=True, blank=True, related_name="+", verbose_name=_("OLT group")
    )
    enabled = models.BooleanField(_("enabled"), default=True)
    event_cursor = models.BigIntegerField(default=0, editable=False)
    outage_cursor = models.BigIntegerField(default=0, editable=False)
    # Of outages up to this one, which is the last that began before the webhook was made, only later events are sent.
    last_old_outage = models.BigIntegerField(default=0, editable=False)
    begins_at = models.DateTimeField(_("sends since"), editable=False)
    # Events up to these are sent again on request.
    replays_events_to = models.BigIntegerField(default=0, editable=False)
    replays_outages_to = models.BigIntegerField(default=0, editable=False)
    # Since when it takes nothing, and why.
    failing_since = models.DateTimeField(_("fails since"), null=True, editable=False)
    last_error = models.CharField(_("last error"), max_length=300, blank=True, editable=False)
    last_sent_at = models.DateTimeField(_("last sent"), null=True, editable=False)
    created_at = models.DateTimeField(_("created"), auto_now_add=True)
    updated_at = models.DateTimeField(_("changed"), auto_now=True)

    class Meta:
        verbose_name = _("webhook")
        verbose_name_plural = _("webhooks")
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class OutageEvent(models.Model):
    """An outage began or ended, as the leader saw it: in the order in which it is sent."""

    outage = models.ForeignKey(Outage, on_delete=models.CASCADE, related_name="events", db_index=False)
    kind = models.CharField(max_length=12, choices=OutageEventKind.choices)
    at = models.DateTimeField()
    # Of its outage.
    is_latest = models.BooleanField(default=True)

    class Meta:
        verbose_name = _("event of an outage")
        verbose_name_plural = _("events of outages")
        indexes = [
            models.Index(fields=["outage"], name="outage_event_outage"),
            models.Index(fields=["at"], name="outage_event_time"),
            models.Index(fields=["id"], name="outage_event_open", condition=Q(is_latest=True, kind="outage_began")),
        ]
        constraints = [
            # Prevents duplicates while two leaders overlap.
            models.UniqueConstraint(fields=["outage"], condition=Q(is_latest=True), name="one_latest_event_per_outage")
        ]

    def __str__(self) -> str:
        return f"{self.outage_id} {self.kind}"


class DeliveryState(models.TextChoices):
    WAITING = "waiting", _("waiting")
    SENT = "sent", _("sent")
    # Of a test, which is tried once.
    FAILED = "failed", _("failed")
    # Another choice of events or a replay took its place.
    REPLACED = "replaced", _("replaced")


class WebhookDelivery(models.Model):
    """One batch: its bounds are fixed before it is sent first, so every try has the same id and the same events."""

    webhook = models.ForeignKey(
        Webhook, on_delete=models.CASCADE, related_name="deliveries", db_index=False, verbose_name=_("webhook")
    )
    is_test = models.BooleanField(_("test"), default=False)
    is_replay = models.BooleanField(_("sent again"), default=False)
    count = models.PositiveIntegerField(_("events"), default=0)
    after_event = models.BigIntegerField(default=0)
    to_event = models.BigIntegerField(default=0)
    after_outage_event = models.BigIntegerField(default=0)
    to_outage_event = models.BigIntegerField(default=0)
    state = models.CharField(_("state"), max_length=10, choices=DeliveryState.choices, default=DeliveryState.WAITING)
    created_at = models.DateTimeField(_("written"))
    tries = models.PositiveIntegerField(_("tries"), default=0)
    next_try_at = models.DateTimeField(_("next try"), null=True)
    last_error = models.CharField(_("last error"), max_length=300, blank=True)
    sent_at = models.DateTimeField(_("sent"), null=True)

    class Meta:
        verbose_name = _("webhook delivery")
        verbose_name_plural = _("webhook deliveries")
        ordering = ["-id"]
        indexes = [
            models.Index(fields=["webhook", "id"], name="webhook_delivery_log"),
            models.Index(fields=["created_at"], name="webhook_delivery_time"),
            models.Index(fields=["next_try_at"], name="webhook_delivery_due", condition=Q(state="waiting")),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["webhook"], condition=Q(state="waiting", is_test=False), name="one_waiting_batch_per_webhook"
            )
        ]

    def __str__(self) -> str:
        return f"{self.webhook_id} #{self.pk}"
