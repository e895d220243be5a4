"""The compiled decoder and its twin agree about every page, however damaged, and the compiled one leaks nothing."""

import random
import subprocess
import sys
import tracemalloc
from types import ModuleType

import pytest

from facho.polling.snmp import _pages, python_pages
from facho.polling.snmp.ber import Oid, Tag, VarBind, encode_varbind
from facho.polling.snmp.ber_values import encode_oid
from facho.polling.snmp.errors import MalformedMessage

SEED = 17_051_951
PREFIX: Oid = (1, 3, 6, 1, 4, 1, 99_999, 1, 3)
# Lengths, types and continuation bits at which readers differ.
NASTY_BYTES = bytes.fromhex("00 01 02 04 05 06 30 40 41 44 46 47 7f 80 81 82 83 84 85 ff")
UNSIGNED = (0, 127, 128, 2**31, 2**32 - 1)
BOUNDARIES: dict[Tag, tuple[int | bytes | Oid, ...]] = {
    Tag.INTEGER: (0, -1, 127, -128, 2**31 - 1, -(2**31)),
    Tag.COUNTER32: UNSIGNED,
    Tag.GAUGE32: UNSIGNED,
    Tag.TIMETICKS: UNSIGNED,
    Tag.COUNTER64: (0, 2**32, 2**63 - 1, 2**63, 2**64 - 1),
    Tag.IP_ADDRESS: (b"\x00\x00\x00\x00", b"\x7f\x80\xff\x01"),
    Tag.OBJECT_IDENTIFIER: ((0, 0), (1, 3, 6, 2**32 - 1), (2, 999, 3), (2, 2**32 - 81), (1, 3, *range(126))),
}
# Bytes that Python itself keeps now and then: caches, the line of an exception.
NOISE_BYTES = 20_000


@pytest.fixture
def decoder() -> None:
    """Replace the fixture that chooses one of them."""


def random_varbind(rng: random.Random, row: int) -> VarBind:
    sub_ids = [rng.choice((0, 1, 127, 128, 16_383, 16_384, 2**32 - 1, rng.getrandbits(32))) for _ in range(2)]
    column = rng.choice((3, 3, 3, 4))
    oid = (*PREFIX[:-1], column, row // 2, *sub_ids[: rng.randrange(3)])
    return (oid, *random_value(rng))


def random_value(rng: random.Random) -> tuple[int, int | bytes | Oid | None]:
    tag = rng.choice(list(Tag))
    if tag in (Tag.OCTET_STRING, Tag.OPAQUE):
        return tag, rng.randbytes(rng.choice((0, 1, 12, 127, 128, 300, 1_024, 1_025)))
    return tag, rng.choice(BOUNDARIES.get(tag, (None,)))


def damage(rng: random.Random, page: bytes) -> bytes:
    spoiled = bytearray(page)
    for _ in range(rng.choice((0, 1, 1, 1, 2, 4))):
        at = rng.randrange(len(spoiled) + 1)
        match rng.randrange(6):
            case 0:
                del spoiled[at:]
            case 1:
                del spoiled[at : at + rng.randrange(1, 5)]
            case 2:
                spoiled[at:at] = rng.choices(NASTY_BYTES, k=rng.randrange(1, 5))
            case 3:
                spoiled[at : at + 1] = bytes([rng.choice(NASTY_BYTES)])
            case 4:
                spoiled[at : at + 1] = bytes([rng.randrange(256)])
            case _ if at < len(spoiled):
                # Lengths that are off by one are the likeliest to be overlooked.
                spoiled[at] = (spoiled[at] + rng.choice((-1, 1))) % 256
    return bytes(spoiled)


def read(decoder: ModuleType, data: bytes, start: int, end: int) -> object:
    """Return all that a decoder says about a page: its varbinds, and the rows of columns of several widths."""
    try:
        page = decoder.VarBindPage(data, start, end)
    except MalformedMessage:
        return None
    message: list[object] = [list(page)]
    for width in (1, 2):
        for after in ((), (1,), (2, 128)):
            column = decoder.ColumnBuffer(encode_oid(PREFIX), after)
            stops = [column.take(page, position, width) for position in range(width)]
            message.append((stops, len(column), column.sub_ids, column.last, column.buffers()))
    if page:
        message.append(list(decoder.weave([page, page], 3)))
    return message


@pytest.mark.parametrize("count", [5_000, pytest.param(1_000_000, marks=[pytest.mark.slow, pytest.mark.thorough])])
def test_both_decoders_say_the_same_about_damaged_pages(count: int) -> None:
    rng = random.Random(SEED)  # noqa: S311 - seeded on purpose
    accepted = 0
    for number in range(count):
        if number % 50 == 0:
            varbinds = [encode_varbind(random_varbind(rng, row)) for row in range(rng.randrange(1, 9))]
        data = damage(rng, b"".join(varbinds))
        # In a message of v3 there may be other bytes before and after.
        before, behind = rng.choice(((b"", b""), (b"\x30", b"\x00\x05\x00")))
        framed = before + data + behind
        bounds = len(before), len(before) + len(data)

        compiled = read(_pages, framed, *bounds)

        assert compiled == read(python_pages, framed, *bounds), (SEED, number, framed.hex(), bounds)
        accepted += compiled is not None
    # Neither all of them nor none.
    assert 0.15 < accepted / count < 0.85


@pytest.mark.parametrize("decoder", [_pages, python_pages], ids=["compiled", "python"])
@pytest.mark.parametrize(
    "oid", [(1,), (1, 40), (3, 1), (1, 3, 2**32), (1, 3, -1), (2, 2**32 - 80), (1, 3, *range(127)), ()]
)
def test_a_question_about_what_is_not_an_oid_is_refused(decoder: ModuleType, oid: Oid) -> None:
    with pytest.raises(ValueError, match=r"."):
        decoder.encode_questions([(1, 3, 6), oid])


@pytest.mark.parametrize("decoder", [_pages, python_pages], ids=["compiled", "python"])
@pytest.mark.parametrize("bounds", [(-1, 2), (2, 1), (0, 3)])
def test_a_page_lies_inside_its_data(decoder: ModuleType, bounds: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="not a part of the data"):
        decoder.VarBindPage(b"\x30\x00", *bounds)


def test_the_compiled_decoder_refuses_what_is_not_its_own() -> None:
    column = _pages.ColumnBuffer(encode_oid(PREFIX), ())
    page = _pages.VarBindPage(b"", 0, 0)

    for arguments in (([], 0, 1), (page, 0), (page, "0", 1)):
        with pytest.raises(TypeError):
            column.take(*arguments)
    for position, width in ((-1, 1), (0, 0)):
        with pytest.raises(ValueError, match="position"):
            column.take(page, position, width)
    with pytest.raises(OverflowError):
        _pages.ColumnBuffer(encode_oid(PREFIX), (-1,))
    with pytest.raises(ValueError, match="woven"):
        _pages.weave([page], 1)


def test_the_compiled_decoder_leaks_nothing() -> None:
    rng = random.Random(SEED)  # noqa: S311 - seeded on purpose
    whole = b"".join(encode_varbind(random_varbind(rng, row)) for row in range(8))
    pages = [damage(rng, whole) for _ in range(200)]

    def decode_all() -> None:
        for page in pages:
            read(_pages, page, 0, len(page))
            _pages.encode_questions([PREFIX, (*PREFIX, 1)])

    decode_all()
    references = [sys.getrefcount(page) for page in pages]
    tracemalloc.start()
    try:
        decode_all()
        held, _ = tracemalloc.get_traced_memory()
        for _ in range(50):
            decode_all()
        grown = tracemalloc.get_traced_memory()[0] - held
    finally:
        tracemalloc.stop()

    assert grown < NOISE_BYTES
    assert [sys.getrefcount(page) for page in pages] == references


def test_without_the_compiled_decoder_its_twin_is_used() -> None:
    hidden = "import sys; sys.modules['facho.polling.snmp._pages'] = None"
    shown = "from facho.polling.snmp import pages; print(pages.is_compiled(), pages.decoder.__name__)"

    done = subprocess.run([sys.executable, "-c", f"{hidden}; {shown}"], capture_output=True, text=True, check=True)

    assert done.stdout.split() == ["False", "facho.polling.snmp.python_pages"]
