"""The rows of a walked column as arrays, and a view of single rows where few are needed."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from facho.polling.domain.onu_table import RawValues
from facho.polling.snmp.ber_values import Oid, Tag, Value, decode_oid

if TYPE_CHECKING:
    from facho.polling.snmp._pages import ColumnBuffer

Row = tuple[Oid, int, Value]


@dataclass(frozen=True, slots=True, eq=False)
class ColumnRows:
    """One column in the agent's order; the sub-identifiers of suffix i end at `suffix_ends[i]` of `suffix_ids`.

    Every row came, so one without a value (NO_VALUE) was a NULL.
    """

    suffix_ids: NDArray[np.uint32]
    suffix_ends: NDArray[np.int64]
    values: RawValues

    @classmethod
    def from_buffer(cls, buffer: "ColumnBuffer") -> "ColumnRows":
        """Return what a walk has gathered, without a Python object for each value."""
        suffix_ids, suffix_ends, tags, numbers, sizes, octets = buffer.buffers()
        values = RawValues(
            np.frombuffer(tags, np.uint8), np.frombuffer(numbers, np.int64), np.frombuffer(sizes, np.int32), octets
        )
        return cls(np.frombuffer(suffix_ids, np.uint32), np.frombuffer(suffix_ends, np.int64), values)

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, row: int) -> Row:
        if not 0 <= row < len(self):
            raise IndexError(row)
        start = int(self.suffix_ends[row - 1]) if row else 0
        suffix = tuple(self.suffix_ids[start : int(self.suffix_ends[row])].tolist())
        return _row(suffix, int(self.values.tags[row]), self.values.at(row))

    def __iter__(self) -> Iterator[Row]:
        ids, values = self.suffix_ids.tolist(), self.values
        bounds = pairwise([0, *self.suffix_ends.tolist()])
        for row, ((start, end), tag) in enumerate(zip(bounds, values.tags.tolist(), strict=True)):
            yield _row(tuple(ids[start:end]), tag, values.at(row))


def _row(suffix: Oid, tag: int, raw: int | bytes | None) -> Row:
    if tag == Tag.OBJECT_IDENTIFIER and isinstance(raw, bytes):
        return suffix, tag, decode_oid(raw)
    return suffix, tag or int(Tag.NULL), raw
