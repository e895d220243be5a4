"""The decoder of answers in Python, used where the compiled one (`_pages.c`) could not be built.

Both have the interface of `_pages.pyi` and the same tests. The loop over varbinds is the hot path of a walk: short
forms are read inline and OIDs are put together from cached halves.
"""

from array import array
from collections.abc import Iterable, Sequence
from itertools import accumulate, chain
from typing import Any

from facho.polling.domain.onu_table import IS_INTEGER, NO_VALUE
from facho.polling.snmp.ber_values import (
    MAX_KEPT_OCTETS,
    SEQUENCE,
    Oid,
    Tag,
    Value,
    VarBind,
    decode_oid,
    decode_sub_ids,
    decode_value,
    encode_oid,
    enter,
    read_length,
    wrap,
)
from facho.polling.snmp.errors import MalformedMessage

_CUT = frozenset(map(int, (Tag.OCTET_STRING, Tag.OPAQUE)))
_NULL = bytes((Tag.NULL, 0))
# OIDs whose varbind, without a value, has a length of one byte.
_LONGEST_SHORT_QUESTION = 0x7F - 4
_SIGNED_64 = 1 << 63
_FIRST_CONTEXT_TAG = int(Tag.NO_SUCH_OBJECT)
# The last bytes of an OID, usually its index; heads (column, port) and tails both repeat from row to row.
_TAIL_BYTES = 6
_CACHE_ENTRIES = 8_192
_CACHE_KEY_BYTES = 40


class VarBindPage(list[VarBind]):
    """The varbinds encoded in `data` from `start` to `end`; MalformedMessage unless they fit exactly."""

    def __init__(self, data: bytes, start: int, end: int, /) -> None:
        super().__init__()
        if not 0 <= start <= end <= len(data):
            raise ValueError("not a part of the data")
        try:
            self._decode(data, start, end)
        except IndexError as error:
            raise MalformedMessage("message ends in the middle of a field") from error

    def _decode(self, data: bytes, pos: int, end: int) -> None:
        append, heads, tails, from_bytes = self.append, _HEADS, _TAILS, int.from_bytes
        while pos < end:
            # One test admits what nearly every varbind is: short lengths that all fit. The rest takes the long way.
            oid_at = pos + 4
            size = data[pos + 1]
            stop = pos + 2 + size
            tag_at = oid_at + data[pos + 3]
            start = tag_at + 2
            if not (
                data[pos] == 0x30
                and data[pos + 2] == 0x06
                and start <= stop <= end
                and size < 0x80
                and start + data[tag_at + 1] == stop
            ):
                varbind, pos = _decode_long_varbind(data, pos, end)
                append(varbind)
                continue
            cut = tag_at - _TAIL_BYTES
            while cut > oid_at and data[cut - 1] > 0x7F:
                cut -= 1
            head = heads.get(data[oid_at:cut])
            tail = tails.get(data[cut:tag_at])
            oid = _decode_oid(data[oid_at:tag_at], cut - oid_at) if head is None or tail is None else head + tail
            tag = data[tag_at]
            value: Value
            if tag == 0x02 and 0 < stop - start < 5:
                value = from_bytes(data[start:stop], "big", signed=True)
            elif tag == 0x04:
                value = data[start:stop]
            else:
                value = decode_value(tag, data[start:stop])
            append((oid, tag, value))
            pos = stop


def weave(pages: Sequence[VarBindPage], rows: int, /) -> VarBindPage:
    """Return `rows` rows made of one varbind of each page in turn; a shorter page repeats its last one."""
    woven = VarBindPage(b"", 0, 0)
    for row in range(rows):
        woven.extend(page[min(row, len(page) - 1)] for page in pages)
    return woven


def encode_questions(oids: Iterable[Oid], /) -> bytes:
    """Encode OIDs without values, as in requests; ValueError for an invalid OID."""
    return b"".join(map(_encode_question, oids))


class ColumnBuffer:
    """The rows of one column as they come, in arrays; `prefix` is the encoded OID of the column."""

    def __init__(self, prefix: bytes, after: Oid, /) -> None:
        # The suffix of the last row, or the one to continue after.
        self.last = after
        self._prefix = decode_oid(prefix)
        self._suffix_ids = array("I")
        self._suffix_ends = array("q")
        self._tags = bytearray()
        self._numbers = array("q")
        self._sizes = array("i")
        self._octets = bytearray()

    def __len__(self) -> int:
        return len(self._tags)

    @property
    def sub_ids(self) -> int:
        """How many numbers the suffixes have in all."""
        return len(self._suffix_ids)

    def take(self, page: VarBindPage, position: int, width: int, /) -> int:
        """Add the varbinds position, position + width, … of a page while they are the next rows of the column.

        Return the place in the page of the first that is not, -1 if all were.
        """
        prefix, size, last = self._prefix, len(self._prefix), self.last
        suffixes: list[Oid] = []
        varbinds = page[position::width]
        stopped_at = -1
        for oid, tag, _ in varbinds:
            suffix = oid[size:]
            if suffix <= last or tag >= _FIRST_CONTEXT_TAG or oid[:size] != prefix:
                stopped_at = position + width * len(suffixes)
                break
            last = suffix
            suffixes.append(suffix)
        if suffixes:
            self.last = last
            # `fromlist` takes half the time of `extend`.
            self._suffix_ends.fromlist(list(accumulate(map(len, suffixes), initial=len(self._suffix_ids)))[1:])
            self._suffix_ids.fromlist(list(chain.from_iterable(suffixes)))
            _, tags, values = zip(*varbinds[: len(suffixes)], strict=True)
            self._add(tags, values)
        return stopped_at

    def buffers(self) -> tuple[bytes, bytes, bytes, bytes, bytes, bytes]:
        """Return suffix_ids and suffix_ends of ColumnRows, then tags, numbers, sizes and octets of its RawValues."""
        return (
            self._suffix_ids.tobytes(),
            self._suffix_ends.tobytes(),
            bytes(self._tags),
            self._numbers.tobytes(),
            self._sizes.tobytes(),
            bytes(self._octets),
        )

    def _add(self, tags: tuple[int, ...], values: tuple[Any, ...]) -> None:
        # Most columns have values of one type, and that is one of two.
        only = tags[0] if tags.count(tags[0]) == len(tags) else None
        if only == Tag.INTEGER:
            self._tags.extend(tags)
            self._numbers.fromlist(list(values))
            self._sizes.fromlist([IS_INTEGER] * len(tags))
            return
        if only == Tag.OCTET_STRING:
            self._tags.extend(tags)
            sizes = list(map(len, values))
            self._numbers.fromlist(list(accumulate(sizes, initial=len(self._octets)))[:-1])
            self._sizes.fromlist(sizes)
            self._octets += b"".join(values)
            return
        for tag, value in zip(tags, values, strict=True):
            octets = encode_oid(value) if isinstance(value, tuple) else value
            if isinstance(octets, bytes):
                number, size = len(self._octets), len(octets)
                self._octets += octets
            else:
                # The 64 bits of a Counter64 as they are; a NULL is a value that did not come.
                number, size = ((octets or 0) + _SIGNED_64) % (2 * _SIGNED_64) - _SIGNED_64, IS_INTEGER
            self._tags.append(NO_VALUE if tag == Tag.NULL else tag)
            self._numbers.append(number)
            self._sizes.append(size)


def _decode_long_varbind(data: bytes, pos: int, end: int) -> tuple[VarBind, int]:
    pos, stop = enter(data, pos, end, SEQUENCE)
    oid_start, oid_end = enter(data, pos, stop, Tag.OBJECT_IDENTIFIER)
    if oid_end >= stop:
        raise MalformedMessage("varbind without a value")
    start, size = read_length(data, oid_end + 1)
    if start + size != stop:
        raise MalformedMessage("value does not end with its varbind")
    oid = decode_oid(data[oid_start:oid_end])
    tag = data[oid_end]
    # Only values on this way can be longer than is kept.
    kept = min(stop, start + MAX_KEPT_OCTETS) if tag in _CUT else stop
    return (oid, tag, decode_value(tag, data[start:kept])), stop


def _encode_question(oid: Oid) -> bytes:
    content = encode_oid(oid)
    size = len(content)
    if size > _LONGEST_SHORT_QUESTION:
        return wrap(SEQUENCE, wrap(Tag.OBJECT_IDENTIFIER, content) + _NULL)
    return bytes((SEQUENCE, size + 4, Tag.OBJECT_IDENTIFIER, size)) + content + _NULL


# Only well-formed halves get in, and both caches are cleared when full: an agent cannot make them grow.
_HEADS: dict[bytes, Oid] = {}
_TAILS: dict[bytes, Oid] = {}


def _decode_oid(raw: bytes, cut: int) -> Oid:
    """Decode an OID and cache its two halves."""
    oid = decode_oid(raw)
    if 0 < cut <= _CACHE_KEY_BYTES:
        tail = decode_sub_ids(raw[cut:])
        _remember(_HEADS, raw[:cut], oid[: len(oid) - len(tail)])
        _remember(_TAILS, raw[cut:], tail)
    return oid


def _remember(cache: dict[bytes, Oid], key: bytes, value: Oid) -> None:
    if len(cache) >= _CACHE_ENTRIES:
        cache.clear()
    cache[key] = value
