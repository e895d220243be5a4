"""Pages make no more queries, and weigh no more, with many ONUs than with few; the numbers are committed."""

import pytest
from bench import pages
from bench.onu_fleet import ONUS_PER_OLT

# The filling lets PostgreSQL look at its tables, which no transaction may.
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize("olts", [1, 4])
def test_a_page_costs_no_more_than_its_baseline_however_many_onus_there_are(olts: int) -> None:
    client = pages.client_of_a_filled_product(olts * ONUS_PER_OLT)

    costs = {page: pages.cost(client, address) for page, address in pages.addresses().items()}

    allowed = pages.allowed_queries()
    assert {page: queries for page, (_, queries) in costs.items() if queries > allowed[page]} == {}
    assert {page: kb for page, (kb, _) in costs.items() if kb > pages.MAX_KB} == {}
