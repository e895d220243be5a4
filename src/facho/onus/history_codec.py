"""Turns polls and grids into compressed blocks and back.

Numbers are written as differences to their neighbour, small ones first, byte plane by byte plane: the upper planes
are nearly all zeros, and zstandard makes nothing of them. A missing value repeats its neighbour and has a bit set.
"""

import math
import struct
from collections.abc import Collection
from typing import TypeAlias

import numpy as np
import zstandard
from numpy.typing import NDArray

from facho.onus.history_grid import AVERAGE, HIGHEST, LOWEST, Grid, Poll
from facho.onus.history_metrics import MISSING, Ints

Buffer: TypeAlias = bytes | memoryview

# The first byte of a block. A block of another kind needs another number, so that old blocks stay readable.
POLL, GRID = 1, 2
# Higher levels take up to twenty times as long and save less than a twentieth.
_LEVEL = 3
_POLL_HEAD = struct.Struct("<qIB")
_GRID_HEAD = struct.Struct("<BII")
_WITHOUT_SIGN = 2**63 - 1
# Twenty times what the largest block holds. A damaged head may claim more memory than there is, before any checksum.
MOST_BYTES = 256 * 1024 * 1024


class UnreadableBlock(ValueError):
    """The block is damaged, or of a kind that this version does not know."""


def encode_poll(poll: Poll) -> bytes:
    """Write a poll with all its metrics, sorted by port and ONU."""
    order = np.lexsort((poll.onu_ids, poll.pon_port_ids))
    parts = [_POLL_HEAD.pack(poll.at, len(order), len(poll.values))]
    parts += [_pack(np.diff(ids[order], prepend=0)) for ids in (poll.pon_port_ids, poll.onu_ids)]
    for metric, values in poll.values.items():
        parts += [bytes([metric]), *_pack_layer(values[np.newaxis, order])]
    return _compress(POLL, parts)


def decode_poll(block: Buffer, metrics: Collection[int] | None = None) -> Poll:
    """Read a poll with those of its metrics that are wanted, or with all."""
    reader = _Reader(_decompress(POLL, block))
    at, size, count = reader.unpack(_POLL_HEAD)
    ports, onus = (np.cumsum(reader.numbers((size,))) for _ in range(2))
    values: dict[int, Ints] = {}
    for _ in range(count):
        metric = reader.byte()
        is_wanted = metrics is None or metric in metrics
        column = reader.layer((1, size), slice(None) if is_wanted else slice(0))
        if is_wanted:
            values[metric] = column[0]
    return Poll(at, onus, ports, values)


def encode_grid(grid: Grid) -> bytes:
    """Write a grid; differences run along the time of each ONU."""
    layers = _as_spreads(grid.layers) if grid.is_summary else grid.layers
    parts = [_GRID_HEAD.pack(len(layers), len(grid.onu_ids), len(grid.at))]
    parts += [_pack(np.diff(numbers, prepend=0)) for numbers in (grid.onu_ids, grid.at)]
    for layer in layers:
        parts += _pack_layer(layer)
    return _compress(GRID, parts)


def decode_grid(block: Buffer, onu_id: int | None = None) -> Grid:
    """Read a grid; with an ONU only its row is put together, and none when it is not in the block."""
    reader = _Reader(_decompress(GRID, block))
    layer_count, height, width = reader.unpack(_GRID_HEAD)
    onu_ids, at = (np.cumsum(reader.numbers((size,))) for size in (height, width))
    rows = slice(None) if onu_id is None else np.flatnonzero(onu_ids == onu_id)
    layers = np.stack([reader.layer((height, width), rows) for _ in range(layer_count)])
    return Grid(onu_ids[rows], at, _from_spreads(layers) if layer_count > 1 else layers)


def is_poll(block: Buffer) -> bool:
    """Tell a poll from a grid."""
    return block[:1] == bytes([POLL])


def _as_spreads(layers: Ints) -> Ints:
    """Write the extremes of a summary as their distance from the average."""
    spreads = layers.copy()
    spreads[LOWEST] = layers[AVERAGE] - layers[LOWEST]
    spreads[HIGHEST] = layers[HIGHEST] - layers[AVERAGE]
    spreads[:, layers[AVERAGE] == MISSING] = MISSING
    return spreads


def _from_spreads(spreads: Ints) -> Ints:
    layers = spreads.copy()
    layers[LOWEST] = spreads[AVERAGE] - spreads[LOWEST]
    layers[HIGHEST] = spreads[AVERAGE] + spreads[HIGHEST]
    layers[:, spreads[AVERAGE] == MISSING] = MISSING
    return layers


def _compress(kind: int, parts: list[bytes]) -> bytes:
    # The checksum tells a damaged block from one with odd values.
    compressor = zstandard.ZstdCompressor(level=_LEVEL, write_checksum=True)
    return bytes([kind]) + compressor.compress(b"".join(parts))


def _decompress(kind: int, block: Buffer) -> bytes:
    if not block or block[0] != kind:
        raise UnreadableBlock(f"not a block of kind {kind}")
    try:
        if zstandard.frame_content_size(block[1:]) > MOST_BYTES:
            raise UnreadableBlock("larger than any block")
        return zstandard.ZstdDecompressor().decompress(block[1:])
    except zstandard.ZstdError as error:
        raise UnreadableBlock(str(error)) from error


def _pack(numbers: Ints) -> bytes:
    """Write whole numbers of either sign in as few byte planes as the largest needs."""
    folded = ((numbers << 1) ^ (numbers >> 63)).astype("<u8").ravel()
    width = (int(folded.max(initial=0)).bit_length() + 7) // 8
    planes = folded.view(np.uint8).reshape(-1, 8)[:, :width].T
    return bytes([width]) + planes.tobytes()


def _pack_layer(layer: Ints) -> list[bytes]:
    is_missing = layer == MISSING
    filled = _filled(layer, is_missing)
    return [np.packbits(is_missing).tobytes(), _pack(np.diff(filled, axis=-1, prepend=0))]


def _filled(layer: Ints, is_missing: NDArray[np.bool_]) -> Ints:
    """Give missing values the value before them, or 0 where there is none."""
    if not is_missing.any():
        return layer
    before = np.where(is_missing, 0, np.arange(layer.shape[-1]))
    filled = np.take_along_axis(layer, np.maximum.accumulate(before, axis=-1), axis=-1)
    filled[filled == MISSING] = 0
    return filled


class _Reader:
    """Reads what was written, in the same order."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def unpack(self, form: struct.Struct) -> tuple[int, ...]:
        self._at += form.size
        return form.unpack_from(self._data, self._at - form.size)

    def byte(self) -> int:
        return int(self._octets(1)[0])

    def numbers(self, shape: tuple[int, ...], rows: slice | Ints = slice(None)) -> Ints:
        """Read an array, but put together only these of its rows."""
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

    def _octets(self, count: int) -> NDArray[np.uint8]:
        self._at += count
        return np.frombuffer(self._data, dtype=np.uint8, count=count, offset=self._at - count)
