"""How many rows to ask for at a time: halves on trouble, creeps back on success, remembers what worked."""

# Successes at one size before the next step towards a size that failed in this walk.
_GOOD_PAGES_BEFORE_STEP = 2
# Successes before trying more than what an earlier walk, or this one, learned to be the limit; doubled on each failure.
_GOOD_PAGES_BEFORE_DARING = 16
# Nearer than this part of the present size, a size that failed is not approached.
_CLOSE_ENOUGH_DIVISOR = 16
# Part of the present size by which a daring step grows.
_DARING_DIVISOR = 4
# How often a size that worked before may fail in a row by bad luck, and how often once it has worked many times.
_CHANCES, _CHANCES_OF_A_PROVEN_SIZE = 1, 3
_GOOD_PAGES_OF_A_PROVEN_SIZE = 16


class PageSize:
    """The repetitions of the next page, between 1 and what the definition wants.

    `learned` is what worked in earlier walks. A size that never worked is a limit once it fails: it is approached
    by halving the distance, so that the limit of an agent is found in few pages and not run into again. A size
    that has worked may fail by bad luck: it gets another chance as soon as anything comes at all.
    """

    def __init__(self, wanted: int, learned: int | None = None) -> None:
        self._wanted = max(1, wanted)
        self.rows = min(self._wanted, max(1, learned or self._wanted))
        self._failed_at = self.rows + 1
        self._best: int | None = None
        self._good_pages = 0
        self._daring_after = _GOOD_PAGES_BEFORE_DARING
        # The largest size that worked and did not turn out to be too much since, and what speaks for it.
        self._trusted = self.rows if learned else 0
        self._proofs = 0
        self._chances_taken = 0
        # The size at which the failures since the last good page began.
        self._trouble_from: int | None = None

    @property
    def is_smallest(self) -> bool:
        """Tell whether there is nothing left to halve."""
        return self.rows == 1

    @property
    def has_worked(self) -> bool:
        """Tell whether any page came."""
        return self._best is not None

    @property
    def learned(self) -> int | None:
        """What to start with next time: the size that worked last; None when none did."""
        return self._trusted if self.has_worked else None

    def page_came(self) -> None:
        """Note a good page and perhaps grow."""
        self._best = self.rows
        self._good_pages += 1
        if self._trouble_from is not None and self._end_trouble(self._trouble_from):
            return
        self._trust()
        if self.rows + self.rows // _CLOSE_ENOUGH_DIVISOR + 1 < self._failed_at:
            if self._good_pages >= _GOOD_PAGES_BEFORE_STEP:
                self._ask_for(min(self.rows * 2, (self.rows + self._failed_at) // 2))
        elif self.rows < self._wanted and self._good_pages >= self._daring_after:
            self._ask_for(min(self._wanted, self.rows + max(1, self.rows // _DARING_DIVISOR)))
            self._failed_at = self.rows + 1

    def page_failed(self, *, is_too_big: bool = False) -> None:
        """Note that a page of this size did not come: back to the last good size, or to half of this one."""
        if is_too_big:
            self._take_for_limit(self.rows)
        else:
            self._trouble_from = self._trouble_from or self.rows
        is_search = self._best is not None and self._best < self.rows
        self._ask_for(self._best if is_search and self._best else max(1, self.rows // 2))

    def nothing_comes(self) -> None:
        """Go down to a single row at once, to tell a deaf agent from one that chokes on size."""
        self._trouble_from = self._trouble_from or self.rows
        self._ask_for(1)

    def _end_trouble(self, began_at: int) -> bool:
        """Go back to where the trouble began, if size is not to blame; tell whether that was done."""
        self._trouble_from = None
        chances = _CHANCES_OF_A_PROVEN_SIZE if self._proofs >= _GOOD_PAGES_OF_A_PROVEN_SIZE else _CHANCES
        if began_at <= self._trusted and self._chances_taken < chances:
            self._chances_taken += 1
            self._ask_for(began_at)
            return True
        self._take_for_limit(began_at)
        return False

    def _trust(self) -> None:
        if self.rows > self._trusted:
            self._trusted, self._proofs = self.rows, 0
        if self.rows == self._trusted:
            self._proofs += 1
            if self._good_pages >= _GOOD_PAGES_BEFORE_STEP:
                self._chances_taken = 0

    def _take_for_limit(self, rows: int) -> None:
        self._failed_at = max(rows, 2)
        self._daring_after *= 2
        self._chances_taken = 0
        if self._trusted >= rows:
            self._trusted = self._proofs = 0

    def _ask_for(self, rows: int) -> None:
        self.rows = rows
        self._good_pages = 0
