"""What a long-lived process takes of its machine: garbage, malloc's arenas, SQLite's statements, descriptors."""

import ctypes
import gc
import resource
import sys
from contextlib import suppress

from django.db import connection

# A poll of an OLT makes tens of thousands of objects, and nearly all of them die without a collector.
NEW_OBJECTS, YOUNG_ROUNDS, OLD_ROUNDS = 50_000, 20, 100

# Python lets a thread have the interpreter for ten times as long.
SWITCH_SECONDS = 0.0005

# Of malloc.h, for mallopt.
M_ARENA_MAX = -8
ARENAS = 2

# Enough for what one request asks more than once, and for what a tick and a run repeat.
WEB_STATEMENTS, ENGINE_STATEMENTS = 16, 48


def collect_seldom() -> None:
    """Leave out what the product itself is made of, and look seldom: by default this takes a tenth of a poll's CPU."""
    gc.freeze()
    gc.set_threshold(NEW_OBJECTS, YOUNG_ROUNDS, OLD_ROUNDS)


def switch_often() -> None:
    """Let a thread that waits for the interpreter have it soon.

    Several statements follow between the end of a run and the next start, and behind each one its thread waits while
    another thread stores rows; with Python's own 5 ms a poller stood idle for half as long again.
    """
    sys.setswitchinterval(SWITCH_SECONDS)


def share_arenas() -> None:
    """Let all threads allocate from the same few arenas; call it before any is started.

    glibc gives each thread one of its own, up to eight for a core, and each keeps the most that its thread ever needed
    at once: an engine with its ten threads grew for hours, by another pass of another thread each time.
    """
    # Not every C library has it; those that do not have no such arenas.
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(M_ARENA_MAX, ARENAS)


def keep_few_statements(count: int) -> None:
    """Let each SQLite connection of this process remember few compiled statements.

    Python keeps 128. Of a web thread nearly each is new, by its filter, its page or its list of ids, so that eight
    threads kept growing for 2,000 requests, by 20 MB. An engine repeats a few dozen, others at the turn of an hour.
    """
    if connection.vendor == "sqlite":
        connection.settings_dict["OPTIONS"]["cached_statements"] = count


def release_free_memory() -> None:
    """Give back to the system what malloc keeps free after a peak."""
    malloc_trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if malloc_trim is not None:
        malloc_trim(0)


def raise_descriptor_limit() -> int:
    """Allow as many open files and sockets as this user may have, and return how many that are."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        soft = hard
    return soft
