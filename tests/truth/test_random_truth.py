"""Whatever happens to simulated OLTs, and however badly their polls go: what is reported equals their journals.

The number of a test is the seed that plays its story again. `TRUTH_SEEDS=100` in the environment plays so many.
"""

import os

import pytest

from truth.polled_fleet import polled
from truth.random_story import RandomStory, config_of, stored_outages
from truth.stored_truth import assert_events_are_true, assert_rows_are_true

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]

EPOCHS = 3
SEEDS = int(os.environ.get("TRUTH_SEEDS", "3"))


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.thorough) for seed in range(2, SEEDS + 1))])
def test_a_random_story_is_reported_as_it_happened(seed: int) -> None:
    with polled(config_of(seed)) as fleet:
        story = RandomStory(fleet, seed)
        for _ in range(EPOCHS):
            story.live_an_epoch()

            assert_events_are_true(story.truth)
            assert_rows_are_true(fleet)
            assert_outages_are_true(story)


def assert_outages_are_true(story: RandomStory) -> None:
    reported, expected = stored_outages(), story.expected_outages
    assert [outage for outage in reported if not any(one.is_reported_by(outage) for one in expected)] == []
    assert [one for one in expected if not any(one.is_reported_by(outage) for outage in reported)] == []
    assert len(reported) == len(expected)
