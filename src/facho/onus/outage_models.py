"""Outages: many faults as one, from the first poll that showed them to the last."""

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from facho.accounts.models import Acknowledgeable
from facho.onus.words import OutageCauses, OutageScopes


class Outage(Acknowledgeable):
    """A port, a card, an OLT or the poller's own network that is out, or was. Numbers beyond its scope are 0."""

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
        """Frame, slot and port as far as the scope needs them."""
        numbers = {OutageScopes.PON: 3, OutageScopes.CARD: 2}.get(OutageScopes(self.scope), 0)
        return "/".join(str(number) for number in (self.frame, self.slot, self.port)[:numbers])
