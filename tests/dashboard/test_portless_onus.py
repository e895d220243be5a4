"""Pages of an OLT that does not tell the ports of its ONUs: they say so, and claim nothing about neighbours."""

import pytest
from django.test import Client

from api.rows import make_olt, make_onu
from facho.onus.models import Onu, PonPort

pytestmark = pytest.mark.django_db


@pytest.fixture
def portless() -> Onu:
    """One of two ONUs that are offline, on a port that nobody knows."""
    olt = make_olt("North", vendor="calix_axos", reachability="up")
    onus = [make_onu(olt, (0, 0, 0, number), run_state="offline") for number in (1, 2)]
    PonPort.objects.update(is_known=False)
    return onus[0]


def test_an_onu_has_no_neighbours_that_anybody_knows(viewer: Client, portless: Onu) -> None:
    page = viewer.get(f"/onus/{portless.id}/").content.decode()

    assert "port unknown" in page
    assert "so it is unknown which ONUs share its fibre" in page
    assert "ONUs of this port are online" not in page
    assert "check the port and its fibre first" not in page


def test_the_map_of_light_shows_no_port(viewer: Client, portless: Onu) -> None:
    page = viewer.get(f"/olts/{portless.olt_id}/light/").content.decode()

    assert "This OLT does not report the ports of its ONUs." in page
    assert "0/0/0" not in page


@pytest.mark.parametrize(("place", "found"), [("?", 2), ("?/1", 1), ("?/7", 0)])
def test_a_place_is_found_as_the_list_prints_it(viewer: Client, portless: Onu, place: str, found: int) -> None:
    make_onu(portless.olt, (0, 1, 0, 1))

    page = viewer.get("/onus/", {"port": place}).content.decode()

    assert page.count('<th scope="row"') == found
