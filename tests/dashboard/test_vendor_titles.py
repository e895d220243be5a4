"""Which devices a definition is for, in the language of whoever chooses or sees it."""

import pytest
from django.utils import translation
from django.utils.translation import trans_real
from tools.messages import collect_texts

from api.rows import make_olt
from facho.dashboard.shared.olt_rows import load_olt_row
from facho.hosts import olt_form
from facho.polling.vendors.loader import load_definitions
from facho.snmp_jobs import job_form
from factories import NOW

SPANISH = "Un equipo cualquiera"


def test_every_title_is_in_the_catalogues() -> None:
    collected = {str(message.id) for message in collect_texts()}

    assert {definition.title for definition in load_definitions().values()} <= collected


@pytest.mark.django_db
def test_titles_are_reported_in_the_language_of_the_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    words = trans_real.translation("es")._catalog._catalogs[0]
    monkeypatch.setitem(words, load_definitions()["generic"].title, SPANISH)
    olt = make_olt(vendor="generic")

    with translation.override("es"):
        row = load_olt_row(olt.id, NOW)
        offered = [dict(form.vendor_choices())["generic"] for form in (olt_form, job_form)]

    assert row.kind == SPANISH
    assert offered == [SPANISH, SPANISH]
