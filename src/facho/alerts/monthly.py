"""Sends the report of the last month: a message for each channel that wants it, with the PDF by e-mail."""

import base64
from datetime import datetime, timedelta

from django.conf import settings
from django.utils.translation import override

from facho.alerts.links import load_public_address
from facho.alerts.models import AlertChannel, Notice, NoticeKind, Severity
from facho.plant.months import zone
from facho.plant.report import ReportQuestion, load_run, load_summary
from facho.plant.report_pdf import coverage_words, load_report, report_title, summary_figures, write_pdf
from facho.polling.domain.availability import Month

# A process that was away on the first of the month still sends the report, but no old one.
REPORT_WITHIN = timedelta(days=7)


def write_reports(now: datetime) -> int:
    """Write the messages for the last month once it is final; each channel gets one, however often this runs."""
    month = Month.of(now, zone()).shifted(-1)
    _start, end = month.bounds(zone())
    wanting = AlertChannel.objects.filter(enabled=True, sends_reports=True)
    if now - end > REPORT_WITHIN or not wanting.exists():
        return 0
    run = load_run(month)
    if run is None or not run.is_final or run.finished_at is None:
        return 0
    known = Notice.objects.filter(kind=NoticeKind.REPORT, key__startswith=f"report {month} ").values("channel_id")
    channels = list(wanting.exclude(id__in=known).order_by("id").only("language"))
    question = ReportQuestion(run)
    # The key is unique: of two processes that write at once one does.
    Notice.objects.bulk_create([build_report(each, question, now) for each in channels], ignore_conflicts=True)
    return len(channels)


def build_report(channel: AlertChannel, question: ReportQuestion, now: datetime) -> Notice:
    """Build the message of a channel, in its language; the scope is the installation's."""
    summary = load_summary(question)
    with override(channel.language or settings.LANGUAGE_CODE):
        lines = [f"{words}: {figure}" for words, figure in summary_figures(summary)]
        title, body = report_title(question), "\n".join([*coverage_words(question), "", *lines])
    return Notice(
        key=f"report {question.month} {channel.pk}",
        channel_id=channel.pk,
        kind=NoticeKind.REPORT,
        severity=Severity.INFO,
        title=title,
        body=body,
        payload={
            "event": NoticeKind.REPORT.value,
            "month": str(question.month),
            "onus": summary.onus,
            "availability": summary.times.availability,
        },
        created_at=now,
        next_try_at=now,
    )


def load_pdf(channel_id: int, month: str) -> str:
    """Write the report in the language of a channel, in base64; empty when its figures have expired."""
    run = load_run(Month.parse(month))
    if run is None:
        return ""
    language = AlertChannel.objects.values_list("language", flat=True).get(pk=channel_id)
    installation = load_public_address().partition("://")[2] or "Facho"
    with override(language or settings.LANGUAGE_CODE):
        content = write_pdf(load_report(ReportQuestion(run)), installation=installation, about="")
    return base64.b64encode(content).decode()
