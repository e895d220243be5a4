"""Python's collector of garbage in a process that polls."""

import gc

# A poll of an OLT makes tens of thousands of objects, and nearly all of them die without a collector.
NEW_OBJECTS, YOUNG_ROUNDS, OLD_ROUNDS = 50_000, 20, 100


def collect_seldom() -> None:
    """Leave out what the product itself is made of, and look seldom: by default this takes a tenth of a poll's CPU."""
    gc.freeze()
    gc.set_threshold(NEW_OBJECTS, YOUNG_ROUNDS, OLD_ROUNDS)
