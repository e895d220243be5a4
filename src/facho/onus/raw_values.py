"""The latest raw values of an OLT's ONUs: one block per OID, compared with a poll, merged, written and shown.

Nothing here is done value by value. A block remembers by which rule each value was decoded: an equal raw value needs no
second look only if the rule is the same. Raw values are shown by `load_raw_values` alone.
"""

import logging
import struct
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import NamedTuple

import numpy as np
from django.db.models import QuerySet
from numpy.typing import NDArray

from facho.infrastructure.bulk import insert_values
from facho.infrastructure.statements import open_cursor
from facho.onus.history_codec import RAW, Buffer, UnreadableBlock, compress, decompress
from facho.onus.history_models import Ints
from facho.onus.models import OnuData
from facho.polling.domain.onu_table import IS_INTEGER, MAX_TEXT, NO_VALUE, NO_VALUE_TAGS, RawValues, raw_text

Bools = NDArray[np.bool_]

# Number of ONUs, octets of the rules and of the values, and the latest change in epoch seconds.
_HEAD = struct.Struct("<IIIq")
_ONU = np.dtype([("id", "<i8"), ("number", "<i8"), ("age", "<u4"), ("size", "<i4"), ("rule", "<u2"), ("tag", "u1")])
_OCTET_STRING = 0x04
# Of each rule: whether the latest read brought a value. If not, the value before it is kept.
_VALUE, _NO_VALUE = "+", "-"
_HAS_VALUE = np.array([tag not in (NO_VALUE, *NO_VALUE_TAGS) for tag in range(256)])


@dataclass(frozen=True, slots=True, eq=False)
class RawBlock:
    """Raw values by ONU; ids ascend, entry i of every array is of one ONU. Times are epoch seconds."""

    onu_ids: Ints
    values: RawValues
    changed_at: Ints
    # Positions in `rules`.
    rule_numbers: Ints
    rules: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.onu_ids)

    def text_of(self, onu_id: int) -> tuple[str, int] | None:
        """Return an ONU's value as text and when it changed; None if it has none."""
        row = int(np.searchsorted(self.onu_ids, onu_id))
        if row == len(self) or self.onu_ids[row] != onu_id or self.values.tags[row] == NO_VALUE:
            return None
        return raw_text(int(self.values.tags[row]), self.values.at(row)), int(self.changed_at[row])

    def only(self, is_kept: Bools) -> "RawBlock":
        values = _packed(take(self.values, is_kept))
        return replace(
            self,
            onu_ids=self.onu_ids[is_kept],
            values=values,
            changed_at=self.changed_at[is_kept],
            rule_numbers=self.rule_numbers[is_kept],
        )


class BlockComparison(NamedTuple):
    """What a read means for a block: whose value, or rule, is another one, and the block to store if one is."""

    touched: Bools
    block: RawBlock | None


_NO_NUMBERS = np.zeros(0, dtype=np.int64)
_NO_VALUES = RawValues(np.zeros(0, dtype=np.uint8), _NO_NUMBERS, np.zeros(0, dtype=np.int32), b"")
EMPTY = RawBlock(_NO_NUMBERS, _NO_VALUES, _NO_NUMBERS, _NO_NUMBERS, ())


def compare(block: RawBlock, onu_ids: Ints, raw: RawValues, *, rule: str, now: int) -> BlockComparison:
    """Compare a block with what was read of these ONUs, ids ascending; ONUs that were not read stay as they are.

    A value too long to be stored in full touches its ONU each time: its end may be another.
    """
    came = raw.tags != NO_VALUE
    if not came.all():
        onu_ids, raw = onu_ids[came], take(raw, came)
    has_values = has_value(raw)
    is_long = has_values & (raw.sizes > MAX_TEXT)
    raw = _shortened(raw, is_long) if is_long.any() else raw
    block, at, is_new = _with_entries(block, onu_ids)
    is_other = has_values & _differ(take(block.values, at), raw)
    rules = (*block.rules, *(sign + rule for sign in (_NO_VALUE, _VALUE) if sign + rule not in block.rules))
    read_by = np.where(has_values, rules.index(_VALUE + rule), rules.index(_NO_VALUE + rule))
    is_stale = is_new | is_other | (block.rule_numbers[at] != read_by)
    touched = came.copy()
    touched[came] = is_stale | is_long
    if not is_stale.any():
        return BlockComparison(touched, None)
    changed_at, numbers = block.changed_at.copy(), block.rule_numbers.copy()
    changed_at[at[is_other]] = now
    numbers[at] = read_by
    values = _laid_over(block.values, at[is_other], take(raw, is_other))
    # Drop rules that no row uses.
    used, numbers = np.unique(numbers, return_inverse=True)
    kept = tuple(rules[number] for number in used)
    return BlockComparison(touched, RawBlock(block.onu_ids, values, changed_at, numbers, kept))


def _with_entries(block: RawBlock, onu_ids: Ints) -> tuple[RawBlock, NDArray[np.intp], Bools]:
    """Return the block with an entry for each of these ONUs, where they are in it, and who had none before."""
    at = np.searchsorted(block.onu_ids, onu_ids)
    is_new = np.append(block.onu_ids, -1)[at] != onu_ids
    if not is_new.any():
        return block, at, is_new
    ids = np.union1d(block.onu_ids, onu_ids)
    before, size = np.searchsorted(ids, block.onu_ids), len(ids)
    columns = {"tags": (np.uint8, NO_VALUE), "numbers": (np.int64, 0), "sizes": (np.int32, IS_INTEGER)}
    values = {name: np.full(size, empty, dtype) for name, (dtype, empty) in columns.items()}
    for name, column in values.items():
        column[before] = getattr(block.values, name)
    changed_at, numbers = np.zeros(size, dtype=np.int64), np.full(size, -1)
    changed_at[before], numbers[before] = block.changed_at, block.rule_numbers
    extended = RawBlock(ids, RawValues(**values, octets=block.values.octets), changed_at, numbers, block.rules)
    return extended, np.searchsorted(ids, onu_ids), is_new


def _laid_over(values: RawValues, at: NDArray[np.intp], new: RawValues) -> RawValues:
    tags, numbers, sizes = values.tags.copy(), values.numbers.copy(), values.sizes.copy()
    is_integer = new.sizes == IS_INTEGER
    tags[at], sizes[at] = new.tags, new.sizes
    if is_integer.all():
        numbers[at] = new.numbers
        return _packed(RawValues(tags, numbers, sizes, values.octets))
    numbers[at] = np.where(is_integer, new.numbers, new.numbers + len(values.octets))
    return _packed(RawValues(tags, numbers, sizes, values.octets + new.octets))


def _differ(one: RawValues, other: RawValues) -> Bools:
    differ: Bools = (one.tags != other.tags) | (one.sizes != other.sizes)
    is_integer = other.sizes == IS_INTEGER
    differ |= is_integer & (one.numbers != other.numbers)
    (rows,) = (~is_integer & ~differ & (other.sizes > 0)).nonzero()
    if rows.size:
        octets = [_gathered(each.octets, each.numbers[rows], each.sizes[rows]) for each in (one, other)]
        ends = np.cumsum(other.sizes[rows])
        differ[rows] = np.logical_or.reduceat(octets[0] != octets[1], ends - other.sizes[rows])
    return differ


def _gathered(octets: bytes, starts: Ints, sizes: NDArray[np.int32]) -> NDArray[np.uint8]:
    """Copy slices of octets behind each other."""
    ends = np.cumsum(sizes)
    total = int(ends[-1]) if ends.size else 0
    return np.frombuffer(octets, dtype=np.uint8)[np.repeat(starts - (ends - sizes), sizes) + np.arange(total)]


def has_value(raw: RawValues) -> Bools:
    """Tell which rows have a value; the others did not come, or the agent reported that there is none."""
    return _HAS_VALUE[raw.tags]


def take(values: RawValues, rows: NDArray[np.intp] | Bools) -> RawValues:
    """Select rows; the octets stay as they are."""
    return RawValues(values.tags[rows], values.numbers[rows], values.sizes[rows], values.octets)


def _packed(values: RawValues) -> RawValues:
    """Leave out unused octets: those of all values follow each other."""
    if not values.octets:
        return values
    (rows,) = (values.sizes != IS_INTEGER).nonzero()
    sizes = values.sizes[rows]
    octets = _gathered(values.octets, values.numbers[rows], sizes).tobytes()
    numbers = values.numbers.copy()
    numbers[rows] = np.cumsum(sizes) - sizes
    return replace(values, numbers=numbers, octets=octets)


def _shortened(raw: RawValues, is_long: Bools) -> RawValues:
    """Replace values by the text that is shown of them, which is still longer than any that is stored in full."""
    tags, numbers, sizes = raw.tags.copy(), raw.numbers.copy(), raw.sizes.copy()
    octets = bytearray(raw.octets)
    for row in np.flatnonzero(is_long).tolist():
        text = raw_text(int(raw.tags[row]), raw.at(row)).encode()
        tags[row], numbers[row], sizes[row] = _OCTET_STRING, len(octets), len(text)
        octets += text
    return RawValues(tags, numbers, sizes, bytes(octets))


def encode_block(block: RawBlock) -> bytes:
    """Write a block; byte n of all entries stands together, which compresses best."""
    rules = "\n".join(block.rules).encode()
    latest = int(block.changed_at.max(initial=0))
    entries = np.empty(len(block), dtype=_ONU)
    entries["id"] = np.diff(block.onu_ids, prepend=0)
    entries["number"] = np.where(block.values.sizes == IS_INTEGER, block.values.numbers, 0)
    entries["age"] = np.minimum(latest - block.changed_at, np.iinfo(np.uint32).max)
    entries["size"], entries["tag"] = block.values.sizes, block.values.tags
    entries["rule"] = block.rule_numbers
    planes = entries.view(np.uint8).reshape(len(block), _ONU.itemsize).T.tobytes()
    head = _HEAD.pack(len(block), len(rules), len(block.values.octets), latest)
    return compress(RAW, [head, rules, planes, block.values.octets])


def decode_block(block: Buffer) -> RawBlock:
    """Read a block; UnreadableBlock if it is damaged."""
    data = decompress(RAW, block)
    if len(data) < _HEAD.size:
        raise UnreadableBlock("too short")
    count, rules_size, octets_size, latest = _HEAD.unpack_from(data)
    entries_at = _HEAD.size + rules_size
    octets_at = entries_at + count * _ONU.itemsize
    if len(data) != octets_at + octets_size:
        raise UnreadableBlock("of another length than it says")
    planes = np.frombuffer(data, dtype=np.uint8, count=count * _ONU.itemsize, offset=entries_at)
    entries = np.ascontiguousarray(planes.reshape(_ONU.itemsize, count).T).view(_ONU).reshape(count)
    sizes = entries["size"].astype(np.int32)
    lengths = np.maximum(sizes, 0).astype(np.int64)
    rules = data[_HEAD.size : entries_at].decode(errors="replace").split("\n")
    onu_ids, numbers = np.cumsum(entries["id"]), entries["rule"].astype(np.int64)
    if lengths.sum() != octets_size or (np.diff(onu_ids) <= 0).any() or numbers.max(initial=0) >= len(rules):
        raise UnreadableBlock("contradicts itself")
    starts = np.where(sizes == IS_INTEGER, entries["number"], np.cumsum(lengths) - lengths)
    values = RawValues(entries["tag"].copy(), starts, sizes, data[octets_at:])
    return RawBlock(onu_ids, values, latest - entries["age"].astype(np.int64), numbers, tuple(rules))


logger = logging.getLogger(__name__)

# Of one OLT: 16,000 ONUs with 60 columns. Only an agent that makes OIDs up has more.
MAX_VALUES = 1_000_000
_COLUMNS = ("olt", "oid", "block", "onus", "updated_at")


class OnuRawValue(NamedTuple):
    """The latest raw value of an ONU, and when a read first brought it."""

    oid: str
    value: str
    updated_at: datetime


def load_raw_values(onu_id: int, blocks: QuerySet[OnuData]) -> list[OnuRawValue]:
    """Load the raw values of an ONU from these blocks of its OLT, by OID; one query."""
    found = []
    for olt_id, oid, data in blocks.order_by("oid").values_list("olt_id", "oid", "block"):
        text = _decoded(olt_id, oid, data).text_of(onu_id)
        if text is not None:
            found.append(OnuRawValue(oid, text[0], datetime.fromtimestamp(text[1], UTC)))
    return found


class OltBlocks(NamedTuple):
    """Blocks by OID, empty where none is stored, and the number of values that the OLT has in all of its blocks."""

    by_oid: Mapping[str, RawBlock]
    values: int


def load_blocks(olt_id: int, oids: Collection[str]) -> OltBlocks:
    """Load the blocks of these OIDs; one statement."""
    by_oid, values = dict.fromkeys(oids, EMPTY), 0
    wanted = ", ".join(["%s"] * len(by_oid)) or "NULL"
    with open_cursor() as cursor:
        cursor.execute(
            f"SELECT oid, onus, CASE WHEN oid IN ({wanted}) THEN block END "  # noqa: S608 our own names
            f"FROM {OnuData._meta.db_table} WHERE olt_id = %s",
            [*by_oid, olt_id],
        )
        for oid, onus, data in cursor.fetchall():
            values += onus
            if data is not None:
                by_oid[oid] = _decoded(olt_id, oid, data)
    return OltBlocks(by_oid, values)


def _decoded(olt_id: int, oid: str, data: Buffer) -> RawBlock:
    try:
        return decode_block(data)
    except UnreadableBlock:
        # The next poll writes it again.
        logger.exception("raw_values.block_unreadable olt=%s oid=%s", olt_id, oid)
        return EMPTY


def save_blocks(
    olt_id: int, stored: OltBlocks, changed: Mapping[str, RawBlock], *, onu_ids: Ints, now: datetime
) -> None:
    """Write blocks that changed, without ONUs that exist no more; one statement."""
    known = np.sort(onu_ids)
    blocks = {oid: _of_known(block, known) for oid, block in changed.items()}
    room = max(0, MAX_VALUES - stored.values)
    if sum(map(len, blocks.values())) > room:
        blocks = _within(olt_id, stored, blocks, room)
    rows = [(olt_id, oid, encode_block(block), len(block), now) for oid, block in blocks.items()]
    insert_values(OnuData, _COLUMNS, rows, unique=["olt", "oid"])


def _of_known(block: RawBlock, onu_ids: Ints) -> RawBlock:
    is_known = np.append(onu_ids, -1)[np.searchsorted(onu_ids, block.onu_ids)] == block.onu_ids
    return block if is_known.all() else block.only(is_known)


def _within(olt_id: int, stored: OltBlocks, blocks: Mapping[str, RawBlock], room: int) -> dict[str, RawBlock]:
    """Leave out new ONUs for which there is no room."""
    kept, left_out = {}, 0
    for oid, block in blocks.items():
        is_new = ~np.isin(block.onu_ids, stored.by_oid[oid].onu_ids)
        fits = ~is_new | (np.cumsum(is_new) <= room)
        room = max(0, room - int(is_new.sum()))
        left_out += int((~fits).sum())
        kept[oid] = block.only(fits)
    if left_out:
        logger.warning("raw_values.too_many olt=%s left_out=%s", olt_id, left_out)
    return kept
