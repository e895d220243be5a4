"""The inventory as CSV in the admin: shown first, then done exactly so, or not at all."""

import json
import re
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from api.rows import make_olt, make_user
from facho.accounts.roles import Role
from facho.hosts.csv import plan_file
from facho.hosts.inventory import RowVerdict
from facho.hosts.models import Olt, OltGroup
from facho.snmp_jobs.models import WorkflowNode

pytestmark = pytest.mark.django_db

IMPORT = "/admin/hosts/olt/import/"
HEADER = "name,host,port,vendor,version,community,group\n"
CANARY = "canary-import"


def give(client: Client, *rows: str) -> str:
    """Paste rows, and return the page that shows what they would do."""
    page = client.post(IMPORT, {"text": HEADER + "\n".join(rows)}).content.decode()
    assert CANARY not in page
    return page


def confirm(client: Client, page: str) -> Any:
    found = re.search(r'name="confirmed" value="(\w+)"', page)
    assert found, page
    return client.post(IMPORT, {"confirmed": found[1]}, follow=True)


def test_what_would_change_is_shown_before_and_then_done() -> None:
    make_olt("Centro", address="192.0.2.1", host="192.0.2.1", port=161)
    make_olt("Sur", address="192.0.2.3", host="192.0.2.3", group=OltGroup.objects.create(name="Sur"))
    rows = [f"Centro,192.0.2.9,,,,{CANARY},", "Sur,192.0.2.3,,,,,", f"Norte,192.0.2.2,,huawei,,{CANARY},Norte"]

    plan = plan_file((HEADER + "\n".join(rows)).encode())

    assert [(row.line, row.name, row.verdict) for row in plan.rows] == [
        (2, "Centro", RowVerdict.CHANGED),
        (3, "Sur", RowVerdict.UNCHANGED),
        (4, "Norte", RowVerdict.NEW),
    ]
    assert list(plan.rows[0].in_words) == ["Host: 192.0.2.1 → 192.0.2.9", "Community: will be set"]
    assert plan.rows[1].secret_words == ["Community: kept"]
    assert "Vendor definition: huawei_smartax" in plan.rows[2].in_words
    assert plan.new_groups == ("Norte",)
    assert CANARY not in repr(plan)


def test_a_confirmed_file_is_imported_as_it_was_shown(administrator: Client) -> None:
    make_olt("Centro", address="192.0.2.1", host="192.0.2.1")

    page = give(administrator, "Centro,192.0.2.1,,zte_c300,,,", f"Norte,192.0.2.2,,huawei,,{CANARY},Norte")
    before = Olt.objects.count()
    answer = confirm(administrator, page)

    assert before == 1
    assert "1 OLTs added, 1 updated" in answer.content.decode()
    norte = Olt.objects.get(name="Norte")
    assert (norte.community.reveal(), norte.group and norte.group.name) == (CANARY, "Norte")
    assert WorkflowNode.objects.filter(workflow__olt=norte).exists()
    reported = dict(LogEntry.objects.values_list("object_repr", "change_message"))
    assert reported["Centro"] == "Imported from a CSV file. Vendor definition: - → zte_c300_c320"
    assert "Host: - → 192.0.2.2" in reported["Norte"]
    assert "Community: changed" in reported["Norte"]
    assert CANARY not in str(reported)
    assert CANARY not in json.dumps(dict(administrator.session))


def test_secrets_that_do_not_go_along_are_shown_and_written_down(administrator: Client) -> None:
    make_olt("Centro", address="192.0.2.1", host="192.0.2.1", v3_auth_key="canary-of-before", v3_user="noc")

    page = give(administrator, f"Centro,192.0.2.9,,,,{CANARY},")
    confirm(administrator, page)

    assert "Authentication key: will be erased" in page
    olt = Olt.objects.get()
    assert (olt.community.reveal(), olt.v3_auth_key.reveal(), olt.v3_user) == (CANARY, "", "")
    reported = LogEntry.objects.values_list("change_message", flat=True).get()
    assert "SNMPv3 user: noc → -" in reported
    assert "Authentication key: erased, since host or port changed" in reported


def test_a_moved_olt_without_its_community_is_a_bad_row(administrator: Client) -> None:
    make_olt("Centro", address="192.0.2.1", host="192.0.2.1")

    page = give(administrator, "Centro,192.0.2.9,,,,,")

    assert "community: enter it again; the stored one is not sent to another address or port" in page
    assert "confirmed" not in page


def test_nothing_is_imported_when_an_olt_changed_meanwhile(administrator: Client) -> None:
    make_olt("Centro", address="192.0.2.1", host="192.0.2.1")
    page = give(administrator, f"Centro,192.0.2.9,,,,{CANARY},", f"Norte,192.0.2.2,,,,{CANARY},")

    Olt.objects.update(host="192.0.2.7", address="192.0.2.7")
    answer = confirm(administrator, page).content.decode()

    assert "Nothing was imported: some OLTs changed meanwhile." in answer
    assert "<del>192.0.2.7</del>" in answer
    assert list(Olt.objects.values_list("host", flat=True)) == ["192.0.2.7"]
    assert "OLTs added" in confirm(administrator, answer).content.decode()


def test_nothing_is_imported_when_another_file_was_given_meanwhile(administrator: Client) -> None:
    page = give(administrator, f"Norte,192.0.2.2,,,,{CANARY},")
    give(administrator, f"Norte,192.0.2.2,,,,other-{CANARY},")

    answer = confirm(administrator, page)

    assert "another file was uploaded meanwhile" in answer.content.decode()
    assert not Olt.objects.exists()


def test_a_bad_row_is_reported_with_its_line_and_nothing_can_be_confirmed(administrator: Client) -> None:
    content = f"{HEADER}Norte,192.0.2.2,,,,{CANARY},\nSur,192.0.2.3,abc,,,{CANARY},\nOeste\n".encode()

    page = administrator.post(IMPORT, {"file": SimpleUploadedFile("olts.csv", content)}).content.decode()

    assert "port &quot;abc&quot; is not a number" in page
    assert "1 columns instead of 7" in page
    assert 'name="confirmed"' not in page
    assert CANARY not in page
    assert "olt_import" not in administrator.session


@pytest.mark.parametrize("inputs", [{}, {"text": "x" * 1_100_000}])
def test_a_file_that_is_none_is_refused(administrator: Client, inputs: dict[str, str]) -> None:
    page = administrator.post(IMPORT, inputs).content.decode()

    assert "errorlist" in page
    assert "x" * 100 not in page


def test_an_export_holds_groups_and_neither_secrets_nor_formulas(administrator: Client) -> None:
    make_olt("=cmd()", host="192.0.2.1", address="192.0.2.1", group=OltGroup.objects.create(name="Norte"))

    answer = administrator.get("/admin/hosts/olt/export/")

    assert answer["Content-Disposition"] == 'attachment; filename="olts.csv"'
    assert answer.content.decode() == f"{HEADER}'=cmd(),192.0.2.1,161,auto,2c,,Norte\n"


def test_a_group_is_kept_when_empty_taken_by_any_case_and_left_by_none(administrator: Client) -> None:
    norte = OltGroup.objects.create(name="Norte")
    make_olt("A", host="192.0.2.1", address="192.0.2.1", group=norte)
    make_olt("B", host="192.0.2.2", address="192.0.2.2", group=norte)
    make_olt("C", host="192.0.2.3", address="192.0.2.3")

    confirm(administrator, give(administrator, "A,192.0.2.1,,,,,", "B,192.0.2.2,,,,,none", "C,192.0.2.3,,,,,NORTE"))

    assert list(Olt.objects.order_by("name").values_list("group__name", flat=True)) == ["Norte", None, "Norte"]
    assert OltGroup.objects.count() == 1


def test_only_an_admin_imports_and_exports() -> None:
    client = Client()
    client.force_login(make_user(Role.OPERATOR))

    assert [client.get(f"/admin/hosts/olt/{page}/").status_code for page in ("import", "export")] == [302, 302]
