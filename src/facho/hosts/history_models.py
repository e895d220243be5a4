"""History blocks of OLT values, and the numbers of OIDs and rows in them."""

from django.db import models
from django.utils.translation import gettext_lazy as _


class HistoryOid(models.Model):
    """The number of an OID in history blocks of OLTs and ONUs; never reused."""

    number = models.PositiveSmallIntegerField(primary_key=True)
    oid = models.CharField(max_length=255, unique=True)

    def __str__(self) -> str:
        return self.oid


class HistoryRow(models.Model):
    """The number of a row of an OLT's tables in its history blocks, for all tables."""

    olt = models.ForeignKey("hosts.Olt", on_delete=models.CASCADE, related_name="+", db_index=False)
    index = models.CharField(max_length=128, blank=True)

    class Meta:
        verbose_name = _("row of an OLT's tables")
        verbose_name_plural = _("rows of OLTs' tables")
        constraints = [models.UniqueConstraint(fields=["olt", "index"], name="one_history_row_per_olt_and_index")]

    def __str__(self) -> str:
        return f"{self.olt_id} · {self.index}"


class OltHistoryPoll(models.Model):
    """One run's values of an OLT, until they are merged into its daily block."""

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
    """One OID of an OLT with all its rows in one period. Blocks are replaced, never updated, as for ONUs."""

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
    class Meta(OltHistoryBlock.Meta):
        verbose_name = _("day of measured values of OLTs")
        verbose_name_plural = _("days of measured values of OLTs")


class OltHistoryHours(OltHistoryBlock):
    class Meta(OltHistoryBlock.Meta):
        verbose_name = _("day of hourly averages of OLTs")
        verbose_name_plural = _("days of hourly averages of OLTs")


class OltHistoryDays(OltHistoryBlock):
    class Meta(OltHistoryBlock.Meta):
        verbose_name = _("month of daily averages of OLTs")
        verbose_name_plural = _("months of daily averages of OLTs")
