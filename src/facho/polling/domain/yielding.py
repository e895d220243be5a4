"""When a long read gives way: at a PON port's border, after a while, if another node of its OLT is due."""

# Long enough that resuming costs little, short enough that a five-minute poll keeps its slot.
YIELD_AFTER_SECONDS = 60.0


def should_yield(
    *, running_seconds: float, another_is_due: bool, yield_after_seconds: float = YIELD_AFTER_SECONDS
) -> bool:
    """Tell whether a run that stands at a port's border lets the others go first."""
    return another_is_due and running_seconds >= yield_after_seconds
