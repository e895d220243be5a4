"""Blocks of history of what OLTs tell of themselves, and the numbers under which they hold it."""

from django.db import models
from django.utils.translation import gettext_lazy as _


class HistoryOid(models.Model):
    """The number that an OID has in blocks of history, of OLTs and of ONUs; it never gets another meaning."""

    number = models.PositiveSmallIntegerField(primary_key=True)
    oid = models.CharField(max_length=255, unique=True)

    def __str__(self) -> str:
        return self.oid


class HistoryRow(models.Model):
    """The number that a row of an OLT's tables has in its blocks, whichever table it is."""

    olt = models.ForeignKey("hosts.Olt", on_delete=models.CASCADE, related_name="+", db_index=False)
    index = models.CharField(max_length=128, blank=True)

    class Meta:
        verbose_name = _("row of an OLT's tables")
        verbose_name_plural = _("rows of OLTs' tables")
        constraints = [models.UniqueConstraint(fields=["olt", "index"], name="one_history_row_per_olt_and_index")]

    def __str__(self) -> str:
        return f"{self.olt_id} · {self.index}"


class OltHistoryPoll(models.Model):
    """What one run read of an OLT with a neighbouring id, until it is merged into its days."""

    port_group = models.BigIntegerField(db_column="olt_group")
    taken_at = models.DateTimeField()
    data = models.BinaryField()

    class Meta:
        indexes = [
            models.Index(fields=["port_group", "taken_at"], name="olt_history_poll_of_group"),
            models.Index(fields=["taken_at"], name="olt_history_poll_oldest"),
        ]

    def __str__(self) -> str:
        return f"{self.port_group} · {self.taken_at}"


class OltHistoryBlock(models.Model):
    """One OID of an OLT, all its rows, in one period. A changed block is a new row, as with ONUs."""

    olt = models.ForeignKey("hosts.Olt", on_delete=models.CASCADE, related_name="+", db_index=False)
    metric = models.PositiveSmallIntegerField()
    ends_at = models.DateTimeField()
    data = models.BinaryField()

    class Meta:
        abstract = True
        constraints = [models.UniqueConstraint(fields=["olt", "metric", "ends_at"], name="one_%(class)s_per_period")]
        indexes = [models.Index(fields=["ends_at"], name="%(class)s_oldest")]

    def __str__(self) -> str:
        return f"{self.olt_id} · {self.metric} · {self.ends_at}"


class OltHistorySamples(OltHistoryBlock):
    """Every sample of a day."""

    class Meta(OltHistoryBlock.Meta):
        verbose_name = _("day of measured values of OLTs")
        verbose_name_plural = _("days of measured values of OLTs")


class OltHistoryHours(OltHistoryBlock):
    """The hours of a day: average, lowest, highest, count."""

    class Meta(OltHistoryBlock.Meta):
        verbose_name = _("day of hourly averages of OLTs")
        verbose_name_plural = _("days of hourly averages of OLTs")


class OltHistoryDays(OltHistoryBlock):
    """The days of a month: average, lowest, highest, count."""

    class Meta(OltHistoryBlock.Meta):
        verbose_name = _("month of daily averages of OLTs")
        verbose_name_plural = _("months of daily averages of OLTs")
