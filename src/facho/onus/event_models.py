"""What happened to ONUs: one timeline, read by ONU, by PON port or by OLT."""

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from facho.onus.words import DownCauses, EventKinds


class OnuEvent(models.Model):
    """One fact about one ONU, at the poll that showed it. Never changed, but for a cause that is told later.

    `before` and `after` are descriptions, powers in dBm or states, as the kind has it.
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
