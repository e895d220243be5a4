"""History blocks: waiting polls, samples by day, and hourly and daily averages."""

from django.db import models
from django.utils.translation import gettext_lazy as _


class HistoryPoll(models.Model):
    """A poll of a few adjacent PON ports, until it is merged into their daily blocks."""

    port_group = models.BigIntegerField()
    taken_at = models.DateTimeField()
    data = models.BinaryField()

    class Meta:
        indexes = [
            models.Index(fields=["port_group", "taken_at"], name="history_poll_of_group"),
            models.Index(fields=["taken_at"], name="history_poll_oldest"),
        ]

    def __str__(self) -> str:
        return f"{self.port_group} · {self.taken_at}"


class HistoryBlock(models.Model):
    """One metric of all ONUs of a PON port in one period.

    A block is replaced, never updated: deleting a row by id proves that it is unchanged since it was read.
    """

    pon_port = models.ForeignKey("onus.PonPort", on_delete=models.CASCADE, related_name="+", db_index=False)
    metric = models.PositiveSmallIntegerField()
    ends_at = models.DateTimeField()
    data = models.BinaryField()

    class Meta:
        abstract = True
        constraints = [
            models.UniqueConstraint(fields=["pon_port", "metric", "ends_at"], name="one_%(class)s_per_period")
        ]
        indexes = [models.Index(fields=["ends_at"], name="%(class)s_oldest")]

    def __str__(self) -> str:
        return f"{self.pon_port_id} · {self.metric} · {self.ends_at}"


class HistorySamples(HistoryBlock):
    class Meta(HistoryBlock.Meta):
        verbose_name = _("day of measured values of ONUs")
        verbose_name_plural = _("days of measured values of ONUs")


class HistoryHours(HistoryBlock):
    """The hours of a day: average, minimum, maximum, count."""

    class Meta(HistoryBlock.Meta):
        verbose_name = _("day of hourly averages of ONUs")
        verbose_name_plural = _("days of hourly averages of ONUs")


class HistoryDays(HistoryBlock):
    """The days of a month: average, minimum, maximum, count."""

    class Meta(HistoryBlock.Meta):
        verbose_name = _("month of daily averages of ONUs")
        verbose_name_plural = _("months of daily averages of ONUs")


class HistoryStay(models.Model):
    """Links an ONU to the ports whose blocks contain it, so that its history is found after it moved."""

    onu = models.ForeignKey("onus.Onu", on_delete=models.CASCADE, related_name="+", db_index=False)
    pon_port = models.ForeignKey("onus.PonPort", on_delete=models.CASCADE, related_name="+")

    class Meta:
        verbose_name = _("stay of an ONU at a port")
        verbose_name_plural = _("stays of ONUs at ports")
        constraints = [models.UniqueConstraint(fields=["onu", "pon_port"], name="one_stay_per_onu_and_port")]

    def __str__(self) -> str:
        return f"{self.onu_id} · {self.pon_port_id}"
