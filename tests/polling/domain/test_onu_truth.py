"""Events and outages equal the journals of simulated OLTs sampled at the polls: no more and no less.

Polls may be silent, broken, short or full of impossible values in between. A failure prints the seed that replays it.
"""

from collections import Counter
from datetime import datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from journal_truth import Fact, fact_of
from polled_story import OltStory, Story
from watched_olt import INTERVAL, moment_of

from facho.polling.domain.onu_events import EventKind

pytestmark = pytest.mark.slow

thorough = settings(max_examples=20)
seeds = st.integers(0, 2**32)


def expected_facts(story: OltStory) -> list[tuple[Fact, float]]:
    """Return what the journal of the epoch says is to be reported, and when it happened."""
    entries = story.olt.world.journal[story.entries_before :]
    return [(fact, entry.at) for entry in entries for fact in story.event_truth.facts(entry)]


def reported_facts(story: OltStory) -> list[tuple[Fact, datetime]]:
    return [(fact_of(serial, event), event.at) for serial, event in story.olt.events[story.events_before :]]


def assert_outages_are_true(story: Story) -> None:
    reported, expected = story.outages.reported, story.expected_outages
    assert [outage for outage in reported if not any(one.is_reported_by(outage) for one in expected)] == []
    assert [one for one in expected if not any(one.is_reported_by(outage) for outage in reported)] == []
    assert len(reported) == len(expected)


@thorough
@given(seeds, st.integers(1, 5))
def test_good_polls_tell_the_journal_at_once(seed: int, epochs: int) -> None:
    story = Story(seed, is_disturbed=False)

    for _ in range(epochs):
        story.live_an_epoch()

        for olt in story.olts:
            reported = reported_facts(olt)
            expected = expected_facts(olt)
            assert Counter(fact for fact, _ in reported) == Counter(fact for fact, _ in expected)
            assert all(is_next_poll(fact, at, dict(expected)[fact]) for fact, at in reported)
    assert_outages_are_true(story)


def is_next_poll(fact: Fact, told_at: datetime, happened_at: float) -> bool:
    """Tell whether a fact was reported at the first poll after it; who is gone may have to be missed twice."""
    waited = told_at - moment_of(happened_at)
    return waited < INTERVAL * (2 if fact[1] is EventKind.GONE else 1)


@thorough
@given(seeds, st.integers(1, 5))
def test_bad_polls_tell_nothing_that_is_not_true_and_good_ones_make_up_for_them(seed: int, epochs: int) -> None:
    story = Story(seed, is_disturbed=True)

    for _ in range(epochs):
        story.live_an_epoch()

        for olt in story.olts:
            reported = reported_facts(olt)
            assert Counter(fact for fact, _ in reported) == Counter(fact for fact, _ in expected_facts(olt))
            assert silent_polls(olt, story).isdisjoint(at for _, at in reported)
    assert_outages_are_true(story)


def silent_polls(olt: OltStory, story: Story) -> set[datetime]:
    """Return when the OLT was asked and did not answer in the last epoch: unknown, never down."""
    last = moment_of(story.seconds)
    return {last - number * INTERVAL for number, look in enumerate(reversed(olt.looks)) if look.is_silent}
