"""The workbench for definitions: who may use it, what it shows, and that nothing typed is lost."""

from importlib.resources import files

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from api.rows import make_olt, make_user
from facho.accounts.models import Profile
from facho.accounts.roles import Role
from facho.dashboard.workbench.views import MAX_RECORDING_BYTES
from facho.executions.models import Execution
from facho.hosts.models import OltGroup

pytestmark = pytest.mark.django_db

ADDRESS = "/workbench/"
GENERIC = (files("facho.polling.vendors") / "definitions/generic.yaml").read_text()
RECORDING = b"1.3.6.1.2.1.1.5.0|4|olt\n1.3.6.1.2.1.2.2.1.8.1|2|1\n1.3.6.1.2.1.2.2.1.8.2|2|77\n"


@pytest.fixture
def admin() -> Client:
    client = Client(headers={"accept-language": "en"})
    client.force_login(make_user(Role.ADMIN))
    return client


def shown(client: Client, **fields: object) -> str:
    answer = client.post(ADDRESS, fields)
    assert answer.status_code == 200
    return answer.content.decode()


@pytest.mark.parametrize("role", [Role.VIEWER, Role.OPERATOR])
def test_only_an_administrator_writes_definitions(role: Role) -> None:
    client = Client()
    client.force_login(make_user(role))

    assert client.get(ADDRESS).status_code == 403
    assert client.post(ADDRESS, {"definition": GENERIC}).status_code == 403


def test_every_fault_is_shown_and_the_text_is_kept(admin: Client) -> None:
    page = shown(admin, definition="key: acme\ntitle: <b>Acme</b>\n")

    assert "definition.yaml: brand: is missing" in page
    assert "definition.yaml: polling: is missing" in page
    assert "title: &lt;b&gt;Acme&lt;/b&gt;\n</textarea>" in page


def test_a_sound_definition_shows_what_it_leaves_out_and_how_to_try_it(admin: Client) -> None:
    olt = make_olt("Cerro Norte")

    page = shown(admin, definition=GENERIC, olt=olt.id)

    assert "No faults: generic has" in page
    assert "no onu.distance: the distance of an ONU stays unknown" in page
    assert "facho vendor try generic.yaml --olt &#x27;Cerro Norte&#x27;" in page
    assert not Execution.objects.exists()


def test_a_recording_shows_what_the_columns_make_of_it(admin: Client) -> None:
    page = shown(admin, definition=GENERIC, recording=SimpleUploadedFile("olt.snmprec", RECORDING))

    assert "values without a word (1x: 77)" in page
    assert page.count("<tr><th scope=") > 10


def test_an_uploaded_definition_can_be_corrected_on_the_page(admin: Client) -> None:
    page = shown(admin, file=SimpleUploadedFile("acme.yaml", b"key: acme\n"))

    assert "acme.yaml: brand: is missing" in page
    assert "key: acme\n</textarea>" in page


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({}, "Paste a definition or upload its file."),
        ({"definition": "key: typed", "file": b"key: other"}, "There is text above"),
        ({"definition": "key: typed", "recording": b"nonsense"}, "line 1: not of the form"),
        ({"definition": "key: typed", "recording": b"\xff\xfe"}, "not UTF-8"),
        ({"definition": "key: typed", "recording": b"#" * (MAX_RECORDING_BYTES + 1)}, "is larger than 2000 kB"),
        ({"definition": "key: typed", "olt": "4711"}, "Select a valid choice"),
    ],
)
def test_nothing_typed_is_lost_by_an_error(admin: Client, fields: dict[str, object], words: str) -> None:
    sent = {
        name: SimpleUploadedFile("f.txt", value) if isinstance(value, bytes) else value
        for name, value in fields.items()
    }

    page = shown(admin, **sent)

    assert words in page
    assert ("key: typed</textarea>" in page) == ("definition" in fields)


def test_an_olt_out_of_scope_is_neither_offered_nor_taken() -> None:
    user = make_user(Role.ADMIN)
    group = OltGroup.objects.create(name="norte")
    Profile.objects.get_or_create(user=user)[0].olt_groups.add(group)
    hidden = make_olt("Secreta")
    client = Client(headers={"accept-language": "en"})
    client.force_login(user)

    page = shown(client, definition=GENERIC, olt=hidden.id)

    assert "Secreta" not in page


def test_an_unknown_device_says_how_to_hand_in_a_report(admin: Client) -> None:
    unknown = make_olt("Nueva OLT", vendor="generic", sys_object_id="1.3.6.1.4.1.99999.1")
    known = make_olt("Otra", vendor="huawei_smartax", sys_object_id="1.3.6.1.4.1.2011.2.248")

    for path in (f"/olts/{unknown.id}/", f"/olts/add/{unknown.id}/"):
        page = admin.get(path).content.decode()
        assert "facho record &#x27;Nueva OLT&#x27; --output olt.snmprec" in page
        assert f'href="/workbench/?olt={unknown.id}"' in page
    assert "facho record" not in admin.get(f"/olts/{known.id}/").content.decode()
