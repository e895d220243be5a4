"""Several engines share OLTs and pollers: nothing is left over, and nothing belongs to two."""

import pytest

from facho.polling.domain.lease import WHOLE, Shard, all_shards, shard_of
from facho.polling.domain.planning import numbers_by_group


@pytest.mark.parametrize("count", range(1, 9))
def test_every_olt_belongs_to_exactly_one_engine(count: int) -> None:
    shards = all_shards(count)

    owners = [[shard for shard in shards if shard.holds(olt_id)] for olt_id in range(1, 100)]

    assert [len(each) for each in owners] == [1] * 99
    assert [shard_of(olt_id, shards) for olt_id in range(1, 100)] == [each for [each] in owners]


@pytest.mark.parametrize("count", range(1, 9))
def test_the_pollers_are_shared_out_and_no_engine_goes_without(count: int) -> None:
    numbers = numbers_by_group(8, {})

    shares = [shard.share(numbers)[""] for shard in all_shards(count)]

    assert sorted(number for share in shares for number in share) == list(range(8))
    assert all(shares)


def test_a_single_engine_has_everything() -> None:
    assert all_shards(1) == (WHOLE,)
    assert WHOLE.share({"": range(3), "norte": range(3, 5)}) == {"": [0, 1, 2], "norte": [3, 4]}


def test_an_engine_is_called_by_its_number_and_the_count() -> None:
    assert str(Shard(2, 3)) == "2/3"
