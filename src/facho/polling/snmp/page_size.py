"""How many rows to ask for at a time: halves on trouble, creeps back on success, remembers what worked."""

# Successes at one size before the next step towards a size that failed in this walk.
_GOOD_PAGES_BEFORE_STEP = 2
# Successes before trying more than what an earlier walk, or this one, learned to be the limit; doubled on each failure.
_GOOD_PAGES_BEFORE_DARING = 16
# Nearer than this part of the present size, a size that failed is not approached.
_CLOSE_ENOUGH_DIVISOR = 8
# Part of the present size by which a daring step grows.
_DARING_DIVISOR = 4


class PageSize:
    """The repetitions of the next page, between 1 and what the definition wants.

    `learned` is what worked in earlier walks. Sizes known to fail are approached by halving the distance, so
    that the limit of an agent is found in few pages and not run into again.
    """

    def __init__(self, wanted: int, learned: int | None = None) -> None:
        self._wanted = max(1, wanted)
        self.rows = min(self._wanted, max(1, learned or self._wanted))
        self._failed_at = self.rows + 1
        self._best: int | None = None
        self._good_pages = 0
        self._daring_after = _GOOD_PAGES_BEFORE_DARING

    @property
    def is_smallest(self) -> bool:
        """Tell whether there is nothing left to halve."""
        return self.rows == 1

    @property
    def learned(self) -> int | None:
        """What to start with next time: the size that worked last; None when none did."""
        return self._best

    def page_came(self) -> None:
        """Note a good page and perhaps grow."""
        self._best = self.rows
        self._good_pages += 1
        if self.rows + self.rows // _CLOSE_ENOUGH_DIVISOR + 1 < self._failed_at:
            if self._good_pages >= _GOOD_PAGES_BEFORE_STEP:
                self._grow_to(min(self.rows * 2, (self.rows + self._failed_at) // 2))
        elif self.rows < self._wanted and self._good_pages >= self._daring_after:
            self._grow_to(min(self._wanted, self.rows + max(1, self.rows // _DARING_DIVISOR)))
            self._failed_at = self.rows + 1

    def page_failed(self) -> None:
        """Note that a page of this size did not come: back to the last good size, or to half of this one."""
        worked_before = self._best if self._best is not None and self._best < self.rows else None
        self._daring_after *= 2
        self._shrink_to(worked_before or max(1, self.rows // 2))

    def nothing_comes(self) -> None:
        """Go down to a single row at once, to tell a deaf agent from one that chokes on size."""
        self._shrink_to(1)

    def _grow_to(self, rows: int) -> None:
        self.rows = rows
        self._good_pages = 0

    def _shrink_to(self, rows: int) -> None:
        self._failed_at = max(self.rows, rows + 1)
        self.rows = rows
        self._best = rows if self._best == rows else None
        self._good_pages = 0
