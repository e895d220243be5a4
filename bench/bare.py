"""The bare pipeline: walks, decodes and overwrites values, an OLT in a statement. The measure of what must be paid.

It is a fixed prototype and imports nothing of the product, so that its cost stays what it is when ours changes. It
knows only columns of integers, keeps what it has read as encoded bytes, trusts every answer, and never asks twice.
As a program it takes its task as the first argument, and polls the fleet once whenever a line asks it to.
"""

import asyncio
import json
import os
import socket
import sys
from dataclasses import dataclass
from functools import cache

import psycopg

from bench.processes import answer

CREATE = """
    CREATE TABLE bare (olt int, place text, key text, raw bigint, value float8, PRIMARY KEY (olt, place, key))
"""
UPSERT = """
    INSERT INTO bare SELECT %s, * FROM unnest(%s::text[], %s::text[], %s::bigint[], %s::float8[])
    ON CONFLICT (olt, place, key) DO UPDATE SET raw = excluded.raw, value = excluded.value
"""
MAX_DATAGRAM_BYTES = 65_535
ANSWER_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class BareColumn:
    """A column of integers: its OID, and how a raw value becomes a value."""

    key: str
    oid: list[int]
    scale: float
    sentinels: list[int]

    @property
    def prefix(self) -> bytes:
        """The OID as it is encoded in front of an index."""
        return bytes([self.oid[0] * 40 + self.oid[1]]) + b"".join(map(_base128, self.oid[2:]))


@dataclass(frozen=True, slots=True)
class BareTask:
    """What to walk, and where to store it."""

    database: str
    ports: list[int]
    columns: list[BareColumn]
    repetitions: int
    at_once: int


class BarePipeline:
    """Polls all OLTs, as many at once as the task says, each with one request in flight."""

    def __init__(self, task: BareTask) -> None:
        self._task = task
        self._prefixes = [column.prefix for column in task.columns]
        self._database = psycopg.connect(task.database, autocommit=True)
        self._database.execute(CREATE)

    def poll(self) -> int:
        return asyncio.run(self._poll_all())

    async def _poll_all(self) -> int:
        free = asyncio.Semaphore(self._task.at_once)

        async def poll(port: int) -> int:
            async with free:
                return self._store(port, await walk(port, self._prefixes, self._task.repetitions))

        return sum(await asyncio.gather(*map(poll, self._task.ports)))

    def _store(self, port: int, rows: list[dict[bytes, int]]) -> int:
        places, keys, raws, values = [], [], [], []
        for column, read in zip(self._task.columns, rows, strict=True):
            scale, sentinels = column.scale, column.sentinels
            places += map(place_of, read)
            keys += [column.key] * len(read)
            raws += read.values()
            values += [None if raw in sentinels else raw * scale for raw in read.values()]
        self._database.execute(UPSERT, [port, places, keys, raws, values])
        return len(raws)


async def walk(port: int, prefixes: list[bytes], repetitions: int) -> list[dict[bytes, int]]:
    """Return the raw values of each column by encoded index."""
    loop = asyncio.get_running_loop()
    rows: list[dict[bytes, int]] = [{} for _ in prefixes]
    after, is_done, number = list(prefixes), False, 0
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as agent:
        agent.setblocking(False)
        agent.connect(("127.0.0.1", port))
        while not is_done:
            number += 1
            agent.send(encode_request(number, after, repetitions))
            async with asyncio.timeout(ANSWER_SECONDS):
                page = await loop.sock_recv(agent, MAX_DATAGRAM_BYTES)
            is_done = read_page(page, prefixes, rows, after)
    return rows


def encode_request(number: int, after: list[bytes], repetitions: int) -> bytes:
    """Encode a GETBULK of SNMP 2c with the community `public` for the rows after these encoded OIDs."""
    varbinds = b"".join(_tlv(0x30, _tlv(0x06, oid) + b"\x05\x00") for oid in after)
    head = _tlv(0x02, number.to_bytes(4, "big")) + b"\x02\x01\x00" + _tlv(0x02, repetitions.to_bytes(2, "big"))
    pdu = _tlv(0xA5, head + _tlv(0x30, varbinds))
    return _tlv(0x30, b"\x02\x01\x01\x04\x06public" + pdu)


def read_page(page: bytes, prefixes: list[bytes], rows: list[dict[bytes, int]], after: list[bytes]) -> bool:
    """Add a page's rows by encoded index and move `after` on; tell whether the first column has ended."""
    # Message, version, community, PDU, request id, error status, error index, list of varbinds.
    at = _content(page, 0)
    for _ in range(2):
        at = _end(page, at)
    at = _content(page, at)
    for _ in range(3):
        at = _end(page, at)
    at = _content(page, at)
    columns, column, end = len(prefixes), 0, len(page)
    while at < end:
        # Varbinds of integers are shorter than 128 bytes: header, OID, value.
        oid_at = at + 4
        value_at = oid_at + page[at + 3]
        oid, prefix = page[oid_at:value_at], prefixes[column]
        at = value_at + 2 + page[value_at + 1]
        if not oid.startswith(prefix) or page[value_at] != 0x02:
            return True
        rows[column][oid[len(prefix) :]] = int.from_bytes(page[value_at + 2 : at], "big", signed=True)
        after[column] = oid
        column = (column + 1) % columns
    return False


@cache
def place_of(index: bytes) -> str:
    """Decode an encoded index."""
    parts, part = [], 0
    for byte in index:
        part = part << 7 | byte & 0x7F
        if byte < 0x80:
            parts.append(part)
            part = 0
    return ".".join(map(str, parts))


def _base128(part: int) -> bytes:
    encoded = [part & 0x7F]
    while part := part >> 7:
        encoded.append(part & 0x7F | 0x80)
    return bytes(reversed(encoded))


def _tlv(tag: int, content: bytes) -> bytes:
    size = len(content)
    if size < 0x80:
        return bytes([tag, size]) + content
    return bytes([tag, 0x82]) + size.to_bytes(2, "big") + content


def _content(page: bytes, at: int) -> int:
    """Return where the content of what begins at `at` begins."""
    size = page[at + 1]
    return at + 2 + (size & 0x7F if size > 0x80 else 0)


def _end(page: bytes, at: int) -> int:
    """Return where a short element that begins at `at` ends."""
    return at + 2 + page[at + 1]


def main() -> None:
    task = json.loads(sys.argv[1])
    pipeline = BarePipeline(BareTask(**{**task, "columns": [BareColumn(**column) for column in task["columns"]]}))
    for line in sys.stdin:
        answer(line, {"pid": os.getpid, "poll": lambda: {"values": pipeline.poll()}})


if __name__ == "__main__":
    main()
