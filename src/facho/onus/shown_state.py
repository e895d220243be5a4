"""What may be said of an ONU now: one rule for a loaded row, for a condition and for a column of a query.

Who has left is absent. Behind an OLT that does not answer, or that nobody asks since it is disabled, nothing is known,
least of all that anybody is down.
"""

from collections import Counter

from django.db.models import Case, CharField, Count, F, Q, Value, When
from django.db.models.functions import Coalesce

from facho.hosts.models import Reachability
from facho.onus.models import Onu
from facho.onus.words import RunState, ShownState
from facho.polling.domain import onu_state


def shown_state(onu: Onu) -> ShownState:
    """Judge an ONU that was loaded with its reading and with what its OLT is: enabled, and reachable."""
    if not onu.is_present:
        return ShownState.ABSENT
    can_be_asked = onu.olt.enabled and onu.olt.reachability != Reachability.DOWN
    return ShownState(onu_state.shown_state(onu_state.RunState(last_known_state(onu)), can_be_asked=can_be_asked))


def last_known_state(onu: Onu) -> RunState:
    """Return what its OLT said of it last, however long ago."""
    reading = getattr(onu, "reading", None)
    return RunState(reading.run_state) if reading else RunState.UNKNOWN


def is_unasked(path: str = "") -> Q:
    """Match the OLTs behind which nothing is known; `path` leads to the OLT, as in `olt__`."""
    return Q(**{f"{path}reachability": Reachability.DOWN}) | Q(**{f"{path}enabled": False})


def in_state(state: str, path: str = "") -> Q:
    """Match the ONUs that are shown in a state; `path` leads to the ONU, as in `onus__`."""
    present, is_silent = Q(**{f"{path}is_present": True}), is_unasked(f"{path}olt__")
    known = f"{path}reading__run_state"
    if state == ShownState.ABSENT:
        return Q(**{f"{path}is_present": False})
    if state == ShownState.UNKNOWN:
        return present & (is_silent | Q(**{known: RunState.UNKNOWN}) | Q(**{f"{known}__isnull": True}))
    return present & ~is_silent & Q(**{known: state})


def shown_state_column(path: str = "") -> Case:
    """Compute the state in the database, to group or to show by it."""
    return Case(
        When(in_state(ShownState.ABSENT, path), then=Value(ShownState.ABSENT.value)),
        When(is_unasked(f"{path}olt__"), then=Value(ShownState.UNKNOWN.value)),
        default=Coalesce(F(f"{path}reading__run_state"), Value(RunState.UNKNOWN.value)),
        output_field=CharField(),
    )


def count_present(olt_id: int | None = None) -> Counter[tuple[int, str]]:
    """Count the present ONUs of every OLT, or of one, by the state that is shown; one query."""
    present = Onu.objects.filter(is_present=True).order_by().annotate(shown=shown_state_column())
    if olt_id is not None:
        present = present.filter(olt_id=olt_id)
    counted = present.values_list("olt_id", "shown").annotate(Count("id"))
    return Counter({(olt_id, state): number for olt_id, state, number in counted})
