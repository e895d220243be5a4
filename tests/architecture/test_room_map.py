"""The picture of the rooms in docs/architecture.md shows the imports as they are."""

from tools import room_map


def test_the_picture_of_the_rooms_is_drawn_from_the_imports() -> None:
    assert room_map.PICTURE.read_text() == room_map.draw(), "`python tools/room_map.py` draws it again"


def test_every_arrow_goes_down_a_layer() -> None:
    rows = room_map.layers()
    depth = {room: number for number, row in enumerate(rows) for room in row}

    found = room_map.imports(list(depth))

    assert [(start, end) for start, ends in found.items() for end in ends if depth[end] <= depth[start]] == []
