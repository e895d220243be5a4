"""The list of mutations: each still fits the product, and together they break every requirement."""

import pytest
from tools import mutations

MUTATIONS = mutations.load_mutations()


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.what)
def test_a_mutation_changes_one_place_of_the_product(mutation: mutations.Mutation) -> None:
    mutations.find_place(mutation.old)

    assert mutation.new != mutation.old


def test_every_id_of_a_mutation_is_named_by_a_test() -> None:
    named = mutations.tests_by_id()

    assert {identifier for mutation in MUTATIONS for identifier in mutation.ids} <= named.keys()


def test_every_requirement_is_broken_by_a_mutation() -> None:
    assert mutations.uncovered_ids(MUTATIONS) == []


def test_no_two_mutations_have_one_description() -> None:
    assert len({mutation.what for mutation in MUTATIONS}) == len(MUTATIONS)
