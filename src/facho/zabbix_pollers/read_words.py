"""Says in a sentence how far the read of one ONU has come, and why it waits or failed."""

from django.utils.timezone import localtime
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from facho.executions.failure_words import FAILURES
from facho.executions.onu_reads import NotThere, TooManyReads
from facho.polling.domain.failure import FailureKind
from facho.zabbix_pollers.explain_words import describe_holder
from facho.zabbix_pollers.read_progress import Obstacles, ReadProgress, ReadStage


def describe_read(progress: ReadProgress) -> str:
    """Put the progress into words; times are local."""
    if progress.obstacles is not None:
        return _waits_for(progress.obstacles)
    if progress.stage is ReadStage.READING:
        return _("Reading now.")
    if progress.stage is ReadStage.EXPIRED:
        return _("It did not get its turn in time. Ask again.")
    at = f"{localtime(progress.finished_at):%H:%M:%S}" if progress.finished_at else ""
    if progress.stage is ReadStage.DONE and progress.is_offline:
        return _("Read at %(at)s: the OLT says that it is offline, so there is no new light.") % {"at": at}
    if progress.stage is ReadStage.DONE:
        return _("Read at %(at)s: the values on this page are new.") % {"at": at}
    return _("Failed at %(at)s. %(reason)s") % {"at": at, "reason": _reason(progress.failure_kind)}


def describe_refusal(refused: NotThere | TooManyReads) -> str:
    """Say why no wish was left."""
    if isinstance(refused, NotThere):
        return _("It is not where it was: there is nobody to ask.")
    return _("Others wait for this OLT already. Ask again in a moment.")


def _reason(kind: str) -> str:
    """A table that is missing means something else where one ONU was asked for."""
    if kind == FailureKind.MISSING:
        return _("The OLT says nothing of this ONU: it may have been removed or moved.")
    return str(FAILURES.get(kind, kind))


def _waits_for(obstacles: Obstacles) -> str:
    if not obstacles.is_olt_enabled:
        return _("Waiting: its OLT is disabled.")
    if obstacles.pause is not None:
        until = f"{localtime(obstacles.pause.ends_at):%Y-%m-%d %H:%M}"
        return _("Waiting: its OLT is paused until %(until)s.") % {"until": until}
    if not obstacles.is_polling:
        return _("Waiting: polling is stopped; nothing is read until the engine runs.")
    if obstacles.holder is not None:
        return _("Waiting for the OLT: %(holder)s.") % {"holder": describe_holder(obstacles.holder)}
    if obstacles.before:
        asked = ngettext("%(number)s other asked first", "%(number)s others asked first", obstacles.before)
        return _("Waiting for the OLT: %(holder)s.") % {"holder": asked % {"number": obstacles.before}}
    return _("Waiting: it starts at once when a poller is free.")
