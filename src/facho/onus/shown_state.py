"""The state shown for an ONU: one rule for a loaded row, for a condition and for a column of a query.

An ONU that has left is absent. Behind an OLT that does not answer or is disabled the state is unknown, not down.
"""

from collections import Counter

from django.db.models import Case, CharField, Count, F, Q, Value, When
from django.db.models.functions import Coalesce

from facho.hosts.models import Reachability
from facho.onus.models import Onu
from facho.onus.words import RunStateChoice, ShownState
from facho.polling.domain import onu_state


def shown_state(onu: Onu) -> ShownState:
    """Return the shown state of an ONU loaded with its reading and OLT."""
    if not onu.is_present:
        return ShownState.ABSENT
    can_be_asked = onu.olt.enabled and onu.olt.reachability != Reachability.DOWN
    return ShownState(onu_state.shown_state(onu_state.RunState(last_known_state(onu)), can_be_asked=can_be_asked))


def last_known_state(onu: Onu) -> RunStateChoice:
    """Return the state the OLT last reported, however long ago."""
    reading = getattr(onu, "reading", None)
    return RunStateChoice(reading.run_state) if reading else RunStateChoice.UNKNOWN


def is_unasked(path: str = "") -> Q:
    """Match OLTs whose ONUs have an unknown state; `path` leads to the OLT, as in `olt__`."""
    return Q(**{f"{path}reachability": Reachability.DOWN}) | Q(**{f"{path}enabled": False})


def in_state(state: str, path: str = "") -> Q:
    """Match ONUs by shown state; `path` leads to the ONU, as in `onus__`."""
    present, is_silent = Q(**{f"{path}is_present": True}), is_unasked(f"{path}olt__")
    known = f"{path}reading__run_state"
    if state == ShownState.ABSENT:
        return Q(**{f"{path}is_present": False})
    if state == ShownState.UNKNOWN:
        return present & (is_silent | Q(**{known: RunStateChoice.UNKNOWN}) | Q(**{f"{known}__isnull": True}))
    return present & ~is_silent & Q(**{known: state})


def shown_state_column(path: str = "") -> Case:
    return Case(
        When(in_state(ShownState.ABSENT, path), then=Value(ShownState.ABSENT.value)),
        When(is_unasked(f"{path}olt__"), then=Value(ShownState.UNKNOWN.value)),
        default=Coalesce(F(f"{path}reading__run_state"), Value(RunStateChoice.UNKNOWN.value)),
        output_field=CharField(),
    )


def count_present(olt_id: int | None = None) -> Counter[tuple[int, str]]:
    """Count present ONUs by OLT and shown state; one query."""
    present = Onu.objects.filter(is_present=True).order_by().annotate(shown=shown_state_column())
    if olt_id is not None:
        present = present.filter(olt_id=olt_id)
    counted = present.values_list("olt_id", "shown").annotate(Count("id"))
    return Counter({(olt_id, state): number for olt_id, state, number in counted})
