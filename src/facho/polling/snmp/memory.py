"""Bounds what answers take in memory, by run and in the whole process.

Sizes are estimates from above, cheap enough to make for every answer. They follow what was measured: a walk of 20
columns of 16,000 ONUs counts as 82 MB. Its arrays take 22 MB; up to its stored rows it took 64 MB when every row was
an object.
"""

from collections.abc import Callable

from facho.polling.snmp.errors import TooMuchData

MEGABYTE = 1_000_000
# Half as much again as the largest OLT needs for a read of all it knows.
RUN_BYTES = 128 * MEGABYTE
# Of all runs at once, or more where there are many pollers: 4 MB are 1,000 ONUs with 16 columns.
PROCESS_BYTES = 128 * MEGABYTE
BYTES_PER_RUN = 4 * MEGABYTE
# What a run may always hold: small reads do not fail because of large ones.
SMALL_BYTES = 2 * MEGABYTE

# An octet is kept up to three times: as it came, as text, and as what it means.
_PER_BYTE = 3
_PER_VARBIND = 100
# What is built around a row of a table: its index, its place, its dictionaries.
PER_ROW = 800
# Four bytes in an array that grows by doubling; on the wire it may have been one.
PER_SUB_ID = 8


class Share:
    """Memory one run holds, until released."""

    def __init__(self, memory: "Memory", address: str) -> None:
        self.used = 0
        self.address = address
        # Ends the run that holds it; None once that is too late.
        self.on_refusal: Callable[[TooMuchData], None] | None = None
        self._memory = memory

    def take_answer(self, *, size: int, varbinds: int) -> None:
        """Account for a kept answer; TooMuchData if there is no room."""
        self.take(_PER_BYTE * size + _PER_VARBIND * varbinds)

    def take(self, size: int) -> None:
        """Account for bytes; TooMuchData if there is no room."""
        self._memory.take(self, size)

    def hold(self) -> "Share":
        """Move the memory to rows waiting to be stored: it can no longer be refused."""
        return self._memory.move(self)

    def release(self) -> None:
        self._memory.release(self)


class Memory:
    """Memory shared by all runs of a process. When full, the run that holds most ends, not the next one to ask."""

    def __init__(self, process_bytes: int = PROCESS_BYTES, run_bytes: int = RUN_BYTES) -> None:
        self.used = 0
        self._process_bytes = process_bytes
        self._run_bytes = run_bytes
        self._shares: set[Share] = set()

    @classmethod
    def for_runs(cls, count: int) -> "Memory":
        return cls(max(PROCESS_BYTES, count * BYTES_PER_RUN))

    def open(self, address: str) -> Share:
        return Share(self, address)

    def take(self, share: Share, size: int) -> None:
        """Account for a run's bytes, ending other runs if needed."""
        self._shares.add(share)
        share.used += size
        self.used += size
        if share.used > self._run_bytes:
            raise self._refuse(share, f"more than the {self._run_bytes // MEGABYTE} MB that a run may keep")
        if self.used <= self._process_bytes:
            return
        largest = max((each for each in self._shares if each.on_refusal), key=lambda each: each.used, default=share)
        if largest.used <= SMALL_BYTES:
            return
        limit = f"more than the others, and all runs together may keep {self._process_bytes // MEGABYTE} MB"
        error = self._refuse(largest, limit)
        if largest is share:
            raise error

    def move(self, share: Share) -> Share:
        held = Share(self, share.address)
        held.used, share.used = share.used, 0
        self._shares.add(held)
        self.release(share)
        return held

    def release(self, share: Share) -> None:
        self._shares.discard(share)
        self.used -= share.used
        share.used = 0
        share.on_refusal = None

    def _refuse(self, share: Share, why: str) -> TooMuchData:
        on_refusal = share.on_refusal
        self.release(share)
        error = TooMuchData(
            f"{share.address} sent {why}; nothing was stored. Is it your OLT? If it is that large, read fewer columns"
            " in one job"
        )
        if on_refusal is not None:
            on_refusal(error)
        return error
