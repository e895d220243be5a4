"""Grids of samples: joined, summed up, and turned into compressed blocks and back.

A bundle holds the grids of several polls behind an index, so that a reader unpacks the port and metric that it wants.

Numbers are written as differences to their neighbour, small ones first, byte plane by byte plane: the upper planes
are nearly all zeros, and zstandard makes nothing of them. A missing value repeats its neighbour and has a bit set.
"""

import math
import struct
import threading
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TypeAlias

import numpy as np
import zstandard
from numpy.typing import NDArray

from facho.onus.history_models import MISSING, Floats, Ints, summable

HOUR_SECONDS, DAY_SECONDS = 3_600, 86_400
AVERAGE, LOWEST, HIGHEST, COUNT = range(4)
# How many spacings tell what is usual at one point of a series, and what share of it is too much.
_SPACINGS = 25
_GAP = 1.75
PortMetricDay = tuple[int, int, int]
Buffer: TypeAlias = bytes | memoryview
# The first byte of a block. A block of another kind needs another number, so that old blocks stay readable.
POLL, GRID, RAW, BUNDLE, LARGE_BUNDLE = 1, 2, 3, 4, 5
# Higher levels take up to twenty times as long and save less than a twentieth.
_LEVEL = 3
_POLL_HEAD = struct.Struct("<qIB")
_GRID_HEAD = struct.Struct("<BII")
# How many grids there are and the checksum of their index; of each its port, metric and length.
_BUNDLE_HEAD = struct.Struct("<BII")
_BUNDLE_ENTRY = struct.Struct("<qBI")
_WITHOUT_SIGN = 2**63 - 1
# Twenty times what the largest block holds. A damaged head may claim more memory than there is, before any checksum.
MOST_BYTES = 256 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Poll:
    """Values of one poll: entry i of every array is of one ONU. `at` is in epoch seconds."""

    at: int
    onu_ids: Ints
    pon_port_ids: Ints
    values: Mapping[int, Ints]

    def pairs(self) -> Iterator[tuple[int, int]]:
        return zip(self.onu_ids.tolist(), self.pon_port_ids.tolist(), strict=True)

    def ports_of(self, onu_id: int | None) -> list[int]:
        found: list[int] = self.pon_port_ids[self.onu_ids == onu_id].tolist() if onu_id is not None else []
        return found

    def at_ports(self, ports: Collection[int]) -> "Poll":
        is_wanted = np.isin(self.pon_port_ids, list(ports))
        values = {metric: column[is_wanted] for metric, column in self.values.items()}
        return Poll(self.at, self.onu_ids[is_wanted], self.pon_port_ids[is_wanted], values)


@dataclass(frozen=True, slots=True)
class HistoryGrid:
    """Values by layer, ONU and time; ids and times (epoch seconds) ascend."""

    onu_ids: Ints
    at: Ints
    layers: Ints

    @property
    def is_summary(self) -> bool:
        return len(self.layers) > 1

    @property
    def day(self) -> int:
        """The day of its first time, counted from the epoch; 0 if it has none."""
        return int(self.at[0]) // DAY_SECONDS if self.at.size else 0

    @property
    def has_values(self) -> bool:
        return bool((self.layers[0] != MISSING).any())

    def of_onu(self, onu_id: int) -> "HistoryGrid":
        """Keep one ONU; empty if it is not in the grid."""
        is_wanted = self.onu_ids == onu_id
        return HistoryGrid(self.onu_ids[is_wanted], self.at, self.layers[:, is_wanted])

    def between(self, start: int, end: int) -> "HistoryGrid":
        is_inside = (self.at >= start) & (self.at < end)
        return HistoryGrid(self.onu_ids, self.at[is_inside], self.layers[:, :, is_inside])

    def trimmed(self) -> "HistoryGrid":
        (used,) = (self.layers[0] != MISSING).any(axis=0).nonzero()
        return self.between(int(self.at[used[0]]), int(self.at[used[-1]]) + 1) if used.size else self.between(0, 0)


def grids_of_polls(polls: Sequence[Poll]) -> dict[PortMetricDay, HistoryGrid]:
    """Split polls into one grid per PON port, metric and day (counted from the epoch)."""
    found: dict[PortMetricDay, HistoryGrid] = {}
    for metric in sorted({metric for poll in polls for metric in poll.values}):
        having = [poll for poll in polls if metric in poll.values]
        at = np.repeat([poll.at for poll in having], [len(poll.onu_ids) for poll in having])
        ports = np.concatenate([poll.pon_port_ids for poll in having])
        onu_ids = np.concatenate([poll.onu_ids for poll in having])
        values = np.concatenate([poll.values[metric] for poll in having])
        days = at // DAY_SECONDS
        order = np.lexsort((days, ports))
        is_new = (np.diff(ports[order]) != 0) | (np.diff(days[order]) != 0)
        for entries in np.split(order, np.flatnonzero(is_new) + 1):
            if not entries.size:
                continue
            port, day = int(ports[entries[0]]), int(days[entries[0]])
            found[port, metric, day] = _grid(onu_ids[entries], at[entries], values[entries])
    return found


def _grid(onu_ids: Ints, at: Ints, values: Ints) -> HistoryGrid:
    ids, rows = np.unique(onu_ids, return_inverse=True)
    times, columns = np.unique(at, return_inverse=True)
    layer = np.full((len(ids), len(times)), MISSING)
    is_value = values != MISSING
    layer[rows[is_value], columns[is_value]] = values[is_value]
    # Without a single value the port was not read: a long pass reads some ports now and the others later.
    was_read = (layer != MISSING).any(axis=0)
    return HistoryGrid(ids, times[was_read], layer[np.newaxis, :, was_read])


def join(grids: Sequence[HistoryGrid]) -> HistoryGrid:
    """Merge grids of one kind.

    Of two samples of one ONU in the same second the later grid's wins; two summaries of one time are combined.
    """
    # Whether the grids have the same ONUs and consecutive times: the usual, fast case.
    first = grids[0]
    follow_each_other = all(
        before.at.size
        and after.at.size
        and before.at[-1] < after.at[0]
        and np.array_equal(after.onu_ids, first.onu_ids)
        for before, after in pairwise(grids)
    )
    if follow_each_other:
        at = np.concatenate([grid.at for grid in grids])
        return HistoryGrid(grids[0].onu_ids, at, np.concatenate([grid.layers for grid in grids], axis=-1))
    ids = np.unique(np.concatenate([grid.onu_ids for grid in grids]))
    at = np.unique(np.concatenate([grid.at for grid in grids]))
    layers = np.full((len(grids[0].layers), len(ids), len(at)), MISSING)
    for grid in grids:
        cells = np.ix_(np.arange(len(layers)), np.searchsorted(ids, grid.onu_ids), np.searchsorted(at, grid.at))
        old, new = layers[cells], grid.layers
        if grid.is_summary:
            layers[cells] = _summed(np.stack([old, new], axis=-1), np.zeros(1, dtype=np.int64))[..., 0]
        else:
            layers[cells] = np.where(new == MISSING, old, new)
    return HistoryGrid(ids, at, layers)


def summarise(grid: HistoryGrid, metric: int, seconds: int) -> HistoryGrid:
    """Return average, minimum, maximum and count per `seconds`, from samples or shorter periods."""
    layers = grid.layers
    if not grid.is_summary:
        samples = summable(metric, layers[0])
        layers = np.stack([samples, samples, samples, np.where(samples == MISSING, MISSING, 1)])
    if not grid.at.size:
        return replace(grid, layers=layers)
    stretches, firsts = np.unique(grid.at // seconds, return_index=True)
    return HistoryGrid(grid.onu_ids, stretches * seconds, _summed(layers, firsts))


def _summed(layers: Ints, firsts: Ints) -> Ints:
    """Aggregate along the last axis, from each of `firsts` to the next."""
    is_missing = layers[AVERAGE] == MISSING
    count = np.where(is_missing, 0, layers[COUNT])
    counts = np.add.reduceat(count, firsts, axis=-1)
    totals = np.add.reduceat(np.where(is_missing, 0, layers[AVERAGE]) * count, firsts, axis=-1)
    average = np.rint(totals / np.maximum(counts, 1)).astype(np.int64)
    lowest = np.minimum.reduceat(np.where(is_missing, np.iinfo(np.int64).max, layers[LOWEST]), firsts, axis=-1)
    highest = np.maximum.reduceat(layers[HIGHEST], firsts, axis=-1)
    summary = np.stack([average, lowest, highest, counts])
    summary[:, counts == 0] = MISSING
    return summary


def with_gaps(grid: HistoryGrid, step_seconds: int | None) -> HistoryGrid:
    """Insert a missing value where one was expected.

    Without a fixed step, that is where the spacing is much longer than usual: a single missed poll is enough.
    """
    if len(grid.at) < 2:
        return grid
    spacing = np.diff(grid.at)
    usual = _usual(spacing) if step_seconds is None else np.full(len(spacing), step_seconds)
    (before,) = (spacing > usual * (1 if step_seconds else _GAP)).nonzero()
    at = np.insert(grid.at, before + 1, grid.at[before] + usual[before].astype(np.int64))
    return HistoryGrid(grid.onu_ids, at, np.insert(grid.layers, before + 1, MISSING, axis=-1))


def without_strangers(grid: HistoryGrid) -> HistoryGrid:
    """Drop the times without a value that come from reading another row between two polls."""
    if len(grid.at) < 3:
        return grid
    spacing = np.diff(grid.at)
    is_between = np.zeros(len(grid.at), dtype=bool)
    # Without it the polls around it are as close as usual: a poll that found nothing would leave a hole there.
    is_between[1:-1] = spacing[1:] + spacing[:-1] <= _usual(spacing)[1:] * _GAP
    is_kept = ~is_between | (grid.layers[0] != MISSING).any(axis=0)
    return HistoryGrid(grid.onu_ids, grid.at[is_kept], grid.layers[:, :, is_kept])


def _usual(spacing: Ints) -> Floats:
    """Return the local median of spacings: the interval may have changed."""
    beside = min(_SPACINGS, len(spacing)) // 2
    padded = np.pad(spacing, beside, mode="reflect") if beside else spacing
    windows = np.lib.stride_tricks.sliding_window_view(padded, 2 * beside + 1)
    return np.asarray(np.median(windows, axis=-1))


class UnreadableBlock(ValueError):
    """The block is damaged, or written by a newer version."""


def encode_poll(poll: Poll) -> bytes:
    """Encode a poll with all its metrics, sorted by port and ONU."""
    order = np.lexsort((poll.onu_ids, poll.pon_port_ids))
    parts = [_POLL_HEAD.pack(poll.at, len(order), len(poll.values))]
    parts += [_pack(np.diff(ids[order], prepend=0)) for ids in (poll.pon_port_ids, poll.onu_ids)]
    for metric, values in poll.values.items():
        parts += [bytes([metric]), *_pack_layer(values[np.newaxis, order])]
    return compress(POLL, parts)


def decode_poll(block: Buffer, metrics: Collection[int] | None = None) -> Poll:
    reader = _Reader(decompress(POLL, block))
    at, size, count = reader.unpack(_POLL_HEAD)
    ports, onus = (np.cumsum(reader.numbers((size,))) for _ in range(2))
    values: dict[int, Ints] = {}
    for _ in range(count):
        metric = reader.byte()
        if metrics is None or metric in metrics:
            values[metric] = reader.layer((1, size), slice(None))[0]
        else:
            reader.skip_layer(size)
    return Poll(at, onus, ports, values)


def encode_grid(grid: HistoryGrid) -> bytes:
    """Encode a grid; values are delta-encoded along each ONU's time."""
    layers = _with_extremes(grid.layers, from_average=-1) if grid.is_summary else grid.layers
    parts = [_GRID_HEAD.pack(len(layers), len(grid.onu_ids), len(grid.at))]
    parts += [_pack(np.diff(numbers, prepend=0)) for numbers in (grid.onu_ids, grid.at)]
    for layer in layers:
        parts += _pack_layer(layer)
    return compress(GRID, parts)


def decode_grid(block: Buffer, onu_id: int | None = None) -> HistoryGrid:
    """Decode a grid; with an ONU only its row, empty if it is not in the block."""
    reader = _Reader(decompress(GRID, block))
    layer_count, height, width = reader.unpack(_GRID_HEAD)
    onu_ids, at = (np.cumsum(reader.numbers((size,))) for size in (height, width))
    rows = slice(None) if onu_id is None else np.flatnonzero(onu_ids == onu_id)
    layers = [reader.layer((height, width), rows) for _ in range(layer_count)]
    # A bundle of a day has hundreds of grids with a single layer, of which stacking would be a tenth of the cost.
    stacked = layers[0][np.newaxis] if layer_count == 1 else _with_extremes(np.stack(layers), from_average=1)
    return HistoryGrid(onu_ids[rows], at, stacked)


def encode_bundle(grids: Iterable[tuple[int, int, HistoryGrid]], kind: int = BUNDLE) -> bytes:
    parts = [(port, metric, encode_grid(grid)) for port, metric, grid in grids]
    index = b"".join(_BUNDLE_ENTRY.pack(port, metric, len(block)) for port, metric, block in parts)
    head = _BUNDLE_HEAD.pack(kind, len(parts), zlib.crc32(index))
    return b"".join([head, index, *(block for _, _, block in parts)])


def decode_bundle(
    block: Buffer,
    ports: Collection[int] | None = None,
    metrics: Collection[int] | None = None,
    onu_id: int | None = None,
) -> Iterator[tuple[int, int, HistoryGrid]]:
    """Decode the grids of these ports and metrics, and nothing else of the block."""
    if len(block) < _BUNDLE_HEAD.size:
        raise UnreadableBlock("too short for a bundle")
    _kind, count, checksum = _BUNDLE_HEAD.unpack_from(block)
    start = _BUNDLE_HEAD.size + count * _BUNDLE_ENTRY.size
    index = block[_BUNDLE_HEAD.size : start]
    if zlib.crc32(index) != checksum or len(index) != count * _BUNDLE_ENTRY.size:
        raise UnreadableBlock("damaged index of a bundle")
    for port, metric, length in _BUNDLE_ENTRY.iter_unpack(index):
        if (ports is None or port in ports) and (metrics is None or metric in metrics):
            yield port, metric, decode_grid(block[start : start + length], onu_id)
        start += length


def by_port(polls: Sequence[Poll]) -> Iterator[tuple[int, int, HistoryGrid]]:
    """Return polls as what a bundle holds: a grid for each port, metric and day."""
    for (port, metric, _day), grid in grids_of_polls(polls).items():
        yield port, metric, grid


def kind_of(block: Buffer) -> int:
    """Return the number of a block's kind; 0 if it is empty."""
    return block[0] if block else 0


def _with_extremes(layers: Ints, *, from_average: int) -> Ints:
    """Turn the extremes of a summary into their distances from the average, by -1, and back, by 1."""
    turned = layers.copy()
    turned[LOWEST] = layers[AVERAGE] - layers[LOWEST]
    turned[HIGHEST] = layers[HIGHEST] + from_average * layers[AVERAGE]
    turned[:, layers[AVERAGE] == MISSING] = MISSING
    return turned


class _Zstandard(threading.local):
    """Contexts of each thread: making one takes ten times as long as a small block."""

    def __init__(self) -> None:
        # The checksum tells a damaged block from one with odd values.
        self.compressor = zstandard.ZstdCompressor(level=_LEVEL, write_checksum=True)
        self.decompressor = zstandard.ZstdDecompressor()


_ZSTANDARD = _Zstandard()


def compress(kind: int, parts: list[bytes]) -> bytes:
    """Compress the parts of a block behind the number of its kind."""
    return bytes([kind]) + _ZSTANDARD.compressor.compress(b"".join(parts))


def decompress(kind: int, block: Buffer) -> bytes:
    """Return what was compressed; UnreadableBlock if it is damaged, of another kind, or claims too much memory."""
    if not block or block[0] != kind:
        raise UnreadableBlock(f"not a block of kind {kind}")
    try:
        if zstandard.frame_content_size(block[1:]) > MOST_BYTES:
            raise UnreadableBlock("larger than any block")
        return _ZSTANDARD.decompressor.decompress(block[1:])
    except zstandard.ZstdError as error:
        raise UnreadableBlock(str(error)) from error


def _pack(numbers: Ints) -> bytes:
    """Pack signed integers into as few byte planes as the largest needs."""
    folded = ((numbers << 1) ^ (numbers >> 63)).astype("<u8").ravel()
    width = (int(folded.max(initial=0)).bit_length() + 7) // 8
    planes = folded.view(np.uint8).reshape(-1, 8)[:, :width].T
    return bytes([width]) + planes.tobytes()


def _pack_layer(layer: Ints) -> list[bytes]:
    is_missing = layer == MISSING
    filled = _filled(layer, is_missing)
    return [np.packbits(is_missing).tobytes(), _pack(np.diff(filled, axis=-1, prepend=0))]


def _filled(layer: Ints, is_missing: NDArray[np.bool_]) -> Ints:
    """Fill missing values with the previous value, or 0."""
    if not is_missing.any():
        return layer
    before = np.where(is_missing, 0, np.arange(layer.shape[-1]))
    filled = np.take_along_axis(layer, np.maximum.accumulate(before, axis=-1), axis=-1)
    filled[filled == MISSING] = 0
    return filled


class _Reader:
    """Reads values in the order they were written."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def unpack(self, form: struct.Struct) -> tuple[int, ...]:
        self._at += form.size
        return form.unpack_from(self._data, self._at - form.size)

    def byte(self) -> int:
        self._at += 1
        return self._data[self._at - 1]

    def numbers(self, shape: tuple[int, ...], rows: slice | Ints = slice(None)) -> Ints:
        width = self.byte()
        planes = self._octets(width * math.prod(shape)).reshape(width, *shape)[:, rows]
        octets = np.zeros((*planes.shape[1:], 8), dtype=np.uint8)
        for number, plane in enumerate(planes):
            octets[..., number] = plane
        folded = octets.view("<i8")[..., 0]
        return ((folded >> 1) & _WITHOUT_SIGN) ^ -(folded & 1)

    def layer(self, shape: tuple[int, int], rows: slice | Ints) -> Ints:
        size = shape[0] * shape[1]
        bits = np.unpackbits(self._octets((size + 7) // 8), count=size).reshape(shape)[rows]
        values = np.cumsum(self.numbers(shape, rows), axis=-1)
        values[bits.astype(bool)] = MISSING
        return values

    def skip_layer(self, size: int) -> None:
        self._at += (size + 7) // 8
        width = self.byte()
        self._at += width * size

    def _octets(self, count: int) -> NDArray[np.uint8]:
        self._at += count
        return np.frombuffer(self._data, dtype=np.uint8, count=count, offset=self._at - count)
