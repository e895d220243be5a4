"""The report of the last month: once for each channel that wants it, with the PDF where it goes by e-mail."""

import io
from datetime import timedelta

import pytest
from django.conf import LazySettings
from pypdf import PdfReader

from alerts.outbox_rows import LOOPBACK, Post, StillClock, deliver, make_channel
from alerts.sinks import http_sink, smtp_sink
from facho.alerts.links import save_public_address
from facho.alerts.models import AlertChannel, ChannelKind, Notice, NoticeKind
from facho.alerts.monthly import REPORT_WITHIN, write_reports
from facho.plant.months import compute_month
from history_world import make_onus, make_ports
from month_world import AFTERWARDS, END, OCTOBER, START, day, down, steady, write_history

ADDRESS = "https://facho.example"


@pytest.fixture
def _october(transactional_db: None, settings: LazySettings) -> None:
    settings.FACHO_HISTORY_DAYS = 40
    (port,) = make_ports(1)
    onus = make_onus(port, 2, now=START - timedelta(days=90))
    write_history(onus, [steady(-20), down(steady(-28), day(3), day(4))])
    save_public_address(ADDRESS)


@pytest.mark.usefixtures("_october")
def test_an_email_carries_the_report_as_pdf_in_the_language_of_its_channel() -> None:
    compute_month(OCTOBER, AFTERWARDS)
    with smtp_sink() as sink:
        make_channel(f"mailto://127.0.0.1:{sink.port}?from=facho@isp.example&to=noc@isp.example")
        AlertChannel.objects.update(language="es", sends_reports=True)
        write_reports(AFTERWARDS)

        deliver(Post(StillClock(AFTERWARDS), LOOPBACK))

    [mail] = sink.received
    text, file = mail.iter_parts()
    assert "octubre de 2026" in str(mail["Subject"])
    assert f"{ADDRESS}/reports/?month=2026-10" in text.get_content().replace("=\n", "").replace("=3D", "=")
    assert file.get_filename() == "facho-report.pdf"
    content = file.get_content()
    assert "octubre de 2026" in PdfReader(io.BytesIO(content)).pages[0].extract_text()


@pytest.mark.usefixtures("_october")
def test_a_webhook_gets_the_numbers_and_the_link() -> None:
    compute_month(OCTOBER, AFTERWARDS)
    with http_sink() as sink:
        make_channel(f"{sink.url}/hook", kind=ChannelKind.WEBHOOK)
        AlertChannel.objects.update(language="en", sends_reports=True)
        write_reports(AFTERWARDS)

        deliver(Post(StillClock(AFTERWARDS), LOOPBACK))

    body = sink.received[0].body.decode()
    assert "Report of October 2026" in body
    assert f"{ADDRESS}/reports/?month=2026-10" in body
    assert "98.387" in body


@pytest.mark.usefixtures("_october")
def test_a_report_is_written_once_whatever_restarts() -> None:
    compute_month(OCTOBER, AFTERWARDS)
    make_channel("ntfys://one")
    AlertChannel.objects.update(sends_reports=True)

    for minutes in range(3):
        write_reports(AFTERWARDS + timedelta(minutes=minutes))

    assert Notice.objects.filter(kind=NoticeKind.REPORT).count() == 1


@pytest.mark.usefixtures("_october")
def test_nothing_is_sent_before_the_month_is_final_nor_long_after_nor_unasked() -> None:
    make_channel("ntfys://one")
    compute_month(OCTOBER, END - timedelta(days=1))
    AlertChannel.objects.update(sends_reports=True)

    write_reports(AFTERWARDS)
    compute_month(OCTOBER, AFTERWARDS)
    write_reports(END + REPORT_WITHIN + timedelta(hours=1))
    AlertChannel.objects.update(sends_reports=False)
    write_reports(AFTERWARDS)

    assert not Notice.objects.exists()
