"""Faults can be asked for in words, and every fault has a word."""

from dataclasses import fields

import pytest

from facho.simulator.config import ConfigError
from facho.simulator.cost import CostModel
from facho.simulator.fault_words import read_faults
from facho.simulator.faults import NO_FAULTS, Faults
from facho.simulator.lies import LoopKind


def test_words_become_faults() -> None:
    words = ["loss=0.05", "crash-above=3", "late_seconds=0.2", "loop=wrap", "is-silent", "cost=0.01"]

    assert read_faults(words) == Faults(
        loss=0.05,
        crash_above=3,
        late_seconds=0.2,
        loop=LoopKind.WRAP,
        is_silent=True,
        cost=CostModel(time_scale=0.01),
    )


def test_no_words_are_no_faults() -> None:
    assert read_faults([]) == NO_FAULTS


@pytest.mark.parametrize("name", [field.name for field in fields(Faults)])
def test_every_fault_can_be_said(name: str) -> None:
    value = {"loop": "stuck", "is_silent": "yes"}.get(name, "1")

    assert getattr(read_faults([f"{name}={value}"]), name)


@pytest.mark.parametrize(
    "word", ["rain=1", "", "loss", "loss=much", "loss=-1", "loss=nan", "loop=square", "is_silent=no"]
)
def test_words_that_mean_nothing_are_named(word: str) -> None:
    with pytest.raises(ConfigError) as refused:
        read_faults([word])

    assert repr(word) in str(refused.value)
