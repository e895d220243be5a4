"""The import of customers on its page: shown before it is made, within one's OLTs; what was typed stays."""

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from accounts.two_groups import make_limited, make_world
from api.rows import make_olt, make_onu, make_user
from facho.accounts.roles import Role
from facho.infrastructure.spreadsheet import write_workbook
from facho.onus.models import OnuCustomer

pytestmark = pytest.mark.django_db

PAGE = "/settings/customers/"
SCRIPT = "<script>alert(1)</script>"


@pytest.fixture
def operator() -> Client:
    client = Client(headers={"accept-language": "en"})
    client.force_login(make_user(Role.OPERATOR))
    return client


def ticket_of(page: str) -> str:
    return page.split('name="confirmed" value="')[1].split('"')[0]


def preview(client: Client, text: str) -> str:
    return client.post(PAGE, {"text": text}).content.decode()


def test_what_would_change_is_shown_and_then_made(operator: Client) -> None:
    make_onu(make_olt(), serial="HWTC12345678")
    text = f"serial,label\nHWTC12345678,{SCRIPT}\nZTEG00000000,Luz\n"

    page = preview(operator, text)
    assert not OnuCustomer.objects.exists()
    answer = operator.post(PAGE, {"confirmed": ticket_of(page)}, follow=True)

    assert "&lt;script&gt;alert(1)" in page
    assert SCRIPT not in page
    assert "1 left out" in page
    assert "no ONU has this serial" in page
    assert "1 customers written, 0 unchanged, 1 left out" in answer.content.decode()
    assert OnuCustomer.objects.get().label == SCRIPT


def test_a_workbook_is_taken_as_a_file(operator: Client) -> None:
    make_onu(make_olt(), serial="HWTC12345678")
    content = b"".join(write_workbook([["serial", "phone"], ["HWTC12345678", 3105551234]]))

    page = operator.post(PAGE, {"file": SimpleUploadedFile("customers.xlsx", content)}).content.decode()
    operator.post(PAGE, {"confirmed": ticket_of(page)})

    assert OnuCustomer.objects.get().phone == "3105551234"


def test_a_bad_file_is_reported_by_line_and_its_text_stays(operator: Client) -> None:
    page = preview(operator, "serial,label\n,Ana\n")

    assert "the serial is missing" in page
    assert "confirmed" not in page
    assert ",Ana\n</textarea>" in page


def test_what_changed_meanwhile_is_shown_again(operator: Client) -> None:
    onu = make_onu(make_olt(), serial="HWTC12345678")
    page = preview(operator, "serial,label\nHWTC12345678,Ana\n")
    OnuCustomer.objects.create(onu=onu, label="Eva")

    answer = operator.post(PAGE, {"confirmed": ticket_of(page)}).content.decode()

    assert "some customers changed meanwhile" in answer
    assert "Eva" in answer
    assert OnuCustomer.objects.get().label == "Eva"


def test_a_ticket_of_another_upload_imports_nothing(operator: Client) -> None:
    make_onu(make_olt(), serial="HWTC12345678")
    page = preview(operator, "serial,label\nHWTC12345678,Ana\n")
    preview(operator, "serial,label\nHWTC12345678,Luz\n")

    operator.post(PAGE, {"confirmed": ticket_of(page)})

    assert not OnuCustomer.objects.exists()


def test_onus_of_other_groups_are_left_out() -> None:
    world, client = make_world(), Client(headers={"accept-language": "en"})
    client.force_login(make_limited(world))

    page = preview(client, "serial,label\nHiddenSERIAL01,Ana\nShownSERIAL01,Luz\n")
    client.post(PAGE, {"confirmed": ticket_of(page)})

    assert "no ONU has this serial" in page
    assert [customer.onu.olt for customer in OnuCustomer.objects.all()] == [world.shown.olt]


def test_viewers_are_refused(viewer: Client) -> None:
    assert viewer.get(PAGE).status_code == 403
    assert viewer.post(PAGE, {"text": "serial,label\nX,Y\n"}).status_code == 403


def test_one_customer_is_edited_beside_its_onu(operator: Client) -> None:
    onu = make_onu(make_olt())
    page = f"/onus/{onu.pk}/customer/"

    wrong = operator.post(page, {"label": "Ana", "latitude": "95", "longitude": "1"}).content.decode()
    operator.post(page, {"label": "Ana", "tags": "vip,,vip", "contract": "C-1", "latitude": "4.6", "longitude": "-74"})

    assert 'value="Ana"' in wrong
    assert "latitude is a number of degrees" in wrong
    customer = OnuCustomer.objects.get()
    assert (customer.label, customer.tags, customer.contract, customer.latitude) == ("Ana", "vip", "C-1", 4.6)
    shown = operator.get(f"/onus/{onu.pk}/").content.decode()
    assert 'href="geo:4.600000,-74.000000"' in shown
    assert 'href="/onus/?tag=vip"' in shown
