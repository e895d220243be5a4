"""Files for spreadsheets and programs: CSV, JSON and workbooks (XLSX), written in parts; workbooks are read, too.

The standard library is enough for them. Texts are written as texts, never as formulas, whatever they begin with. What
is read is bounded before it is unpacked.
"""

import csv
import io
import json
import re
import zipfile
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from types import MappingProxyType
from typing import Any
from xml.parsers import expat
from xml.sax.saxutils import escape

from asgiref.sync import sync_to_async
from django.http import StreamingHttpResponse

SIGNATURE = b"PK\x03\x04"
# A sheet of 50,000 customers unpacks to a fifth of it.
MAX_UNPACKED_BYTES = 100_000_000
MAX_COLUMNS = 100
# What a sheet holds; further rows go to the next one.
ROWS_PER_SHEET = 1_048_576
_PIECE = 65_536

_CELL_PLACE = re.compile(r"([A-Z]{1,3})[0-9]{1,7}")
# XML 1.0 has no place for these, not even escaped.
_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_NAMESPACE = "http://schemas.openxmlformats.org"
_SHEET_TYPE = "application/vnd.openxmlformats-officedocument.spreadsheetml"
_SHEET_START = (
    f'<?xml version="1.0" encoding="UTF-8"?>\n<worksheet xmlns="{_NAMESPACE}/spreadsheetml/2006/main"><sheetData>'
)
_SHEET_END = "</sheetData></worksheet>"

Cell = str | int | float | bool | None

FILE_TYPES = MappingProxyType(
    {
        "csv": "text/csv; charset=utf-8",
        "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        "json": "application/json; charset=utf-8",
    }
)

# A spreadsheet runs a cell that begins so; an apostrophe before it keeps it text. One that separates by semicolons or
# tabs, as in many countries, also begins a cell after each of them and after line breaks, though our quotes forbid it.
_BEGINNING = r"(?:\A|(?<=[;\t\r\n]))"
_FORMULA = r"(?=[ '\"]*[=+\-@\t\r\n＝＋－＠])"  # noqa: RUF001 the wide signs are run in some countries
_UNGUARDED = re.compile(_BEGINNING + _FORMULA)
_GUARDED = re.compile(f"{_BEGINNING}'{_FORMULA}")


class NotAWorkbook(ValueError):
    """The content cannot be read as a workbook."""


def answer_file(name: str, kind: str, parts: Iterator[bytes], *, content_type: str = "") -> StreamingHttpResponse:
    """Send a file while it is written."""
    answer = answer_parts(parts, content_type or FILE_TYPES[kind])
    answer.headers["Content-Disposition"] = f'attachment; filename="{name}.{kind}"'
    return answer


def answer_parts(parts: Iterator[bytes], content_type: str) -> StreamingHttpResponse:
    """Send an answer while it is written."""
    return StreamingHttpResponse(_in_a_thread(parts), content_type=content_type)


def write_file(kind: str, columns: Sequence[str], rows: Iterable[Sequence[Cell]]) -> Iterator[bytes]:
    """Write rows as one of FILE_TYPES; as JSON each row is an object."""
    if kind == "xlsx":
        return write_workbook(_with_header(columns, rows))
    if kind == "csv":
        return write_csv(_with_header(columns, rows))
    return write_json(dict(zip(columns, row, strict=True)) for row in rows)


def write_csv(rows: Iterable[Sequence[Cell]]) -> Iterator[bytes]:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for row in rows:
        writer.writerow([guard(cell) if isinstance(cell, str) else _plain(cell) for cell in row])
        if text.tell() >= _PIECE:
            yield text.getvalue().encode()
            text.seek(0)
            text.truncate()
    yield text.getvalue().encode()


def write_json(rows: Iterable[Any]) -> Iterator[bytes]:
    waiting, opening = "", "["
    for row in rows:
        waiting += opening + json.dumps(row, ensure_ascii=False)
        opening = ",\n"
        if len(waiting) >= _PIECE:
            yield waiting.encode()
            waiting = ""
    yield (waiting + ("[]\n" if opening == "[" else "]\n")).encode()


def _with_header(columns: Sequence[str], rows: Iterable[Sequence[Cell]]) -> Iterator[Sequence[Cell]]:
    yield columns
    yield from rows


def _plain(cell: Cell) -> str:
    return "" if cell is None else json.dumps(cell)


async def _in_a_thread(parts: Iterator[bytes]) -> AsyncIterator[bytes]:
    # Django would read a plain iterator to its end before it sends the first byte.
    take = sync_to_async(lambda: next(parts, None))
    while (part := await take()) is not None:
        yield part


def guard(cell: str) -> str:
    """Neutralise text that a spreadsheet would run as a formula."""
    return _UNGUARDED.sub("'", cell)


def unguard(cell: str) -> str:
    return _GUARDED.sub("", cell)


def read_workbook(content: bytes) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows of the first sheet with their numbers, every cell as text; NotAWorkbook if it cannot be read."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            if sum(each.file_size for each in archive.infolist()) > MAX_UNPACKED_BYTES:
                raise NotAWorkbook("too large")
            names = archive.namelist()
            shared = "xl/sharedStrings.xml"
            texts = _read_texts(archive.read(shared)) if shared in names else []
            sheets = sorted(name for name in names if re.fullmatch(r"xl/worksheets/sheet[0-9]+\.xml", name))
            if not sheets:
                raise NotAWorkbook("no sheet")
            rows = _SheetRows(texts)
            _parse(archive.read(min(sheets, key=lambda name: (len(name), name))), rows.begin, rows.end, rows.hear)
    except (zipfile.BadZipFile, KeyError, NotImplementedError, RuntimeError, EOFError, OSError, OverflowError) as error:
        raise NotAWorkbook(type(error).__name__) from error
    yield from rows.found


def write_workbook(rows: Iterable[Sequence[Cell]]) -> Iterator[bytes]:
    """Write a workbook while its rows come; only the current piece is held."""
    out = _Pipe()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        source, sheets, more = iter(rows), 0, True
        while more:
            sheets += 1
            with archive.open(f"xl/worksheets/sheet{sheets}.xml", "w", force_zip64=True) as sheet:
                sheet.write(_SHEET_START.encode())
                more = False
                for number, row in enumerate(source, 1):
                    sheet.write(_row(number, row).encode())
                    if len(out.waiting) >= _PIECE:
                        yield out.take()
                    if number == ROWS_PER_SHEET:
                        more = True
                        break
                sheet.write(_SHEET_END.encode())
        for name, text in _about(sheets).items():
            archive.writestr(name, text)
    yield out.take()


class _Pipe(io.RawIOBase):
    """A file that can only be written to, and whose content is taken away as it comes."""

    def __init__(self) -> None:
        super().__init__()
        self.waiting = bytearray()

    def writable(self) -> bool:
        return True

    def write(self, part: Any) -> int:
        self.waiting += part
        return len(part)

    def take(self) -> bytes:
        taken = bytes(self.waiting)
        self.waiting.clear()
        return taken


def _row(number: int, cells: Sequence[Cell]) -> str:
    return f'<row r="{number}">{"".join(map(_cell, cells))}</row>'


def _cell(value: Cell) -> str:
    if value is None or value == "":
        return "<c/>"
    if isinstance(value, bool):
        return f'<c t="b"><v>{value:d}</v></c>'
    if isinstance(value, int | float):
        return f"<c><v>{value!r}</v></c>"
    return f'<c t="inlineStr"><is><t xml:space="preserve">{escape(_NOT_XML.sub("", value))}</t></is></c>'


def _about(sheets: int) -> dict[str, str]:
    """Write what a workbook says about its parts."""
    numbers, head = range(1, sheets + 1), '<?xml version="1.0" encoding="UTF-8"?>\n'
    relation = f"{_NAMESPACE}/officeDocument/2006/relationships"
    types = "".join(
        f'<Override PartName="/xl/worksheets/sheet{each}.xml" ContentType="{_SHEET_TYPE}.worksheet+xml"/>'
        for each in numbers
    )
    listed = "".join(f'<sheet name="{each}" sheetId="{each}" r:id="rId{each}"/>' for each in numbers)
    links = "".join(
        f'<Relationship Id="rId{each}" Type="{relation}/worksheet" Target="worksheets/sheet{each}.xml"/>'
        for each in numbers
    )
    return {
        "[Content_Types].xml": (
            f'{head}<Types xmlns="{_NAMESPACE}/package/2006/content-types">'
            '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
            f'<Override PartName="/xl/workbook.xml" ContentType="{_SHEET_TYPE}.sheet.main+xml"/>{types}</Types>'
        ),
        "_rels/.rels": (
            f'{head}<Relationships xmlns="{_NAMESPACE}/package/2006/relationships">'
            f'<Relationship Id="rId1" Type="{relation}/officeDocument" Target="xl/workbook.xml"/></Relationships>'
        ),
        "xl/workbook.xml": (
            f'{head}<workbook xmlns="{_NAMESPACE}/spreadsheetml/2006/main" xmlns:r="{relation}">'
            f"<sheets>{listed}</sheets></workbook>"
        ),
        "xl/_rels/workbook.xml.rels": (
            f'{head}<Relationships xmlns="{_NAMESPACE}/package/2006/relationships">{links}</Relationships>'
        ),
    }


def _parse(content: bytes, begin: Any, end: Any, hear: Any) -> None:
    """Read XML without its own entities: those may grow without end, and no workbook has any."""

    def refuse(*_about: object) -> None:
        raise NotAWorkbook("DOCTYPE")

    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartDoctypeDeclHandler = refuse
    parser.StartElementHandler, parser.EndElementHandler, parser.CharacterDataHandler = begin, end, hear
    try:
        parser.Parse(content, True)
    except expat.ExpatError as error:
        raise NotAWorkbook("XML") from error


def _read_texts(content: bytes) -> list[str]:
    """Read the texts that cells share; a text in several fonts is in several parts."""
    texts: list[str] = []
    inside: list[str] = []

    def begin(name: str, _attributes: dict[str, str]) -> None:
        inside.append(name.rpartition(":")[2])
        if inside[-1] == "si":
            texts.append("")

    def end(_name: str) -> None:
        inside.pop()

    def hear(text: str) -> None:
        # How a text is pronounced is no part of it.
        if texts and inside[-1] == "t" and "rPh" not in inside:
            texts[-1] += text

    _parse(content, begin, end, hear)
    return texts


class _SheetRows:
    def __init__(self, texts: Sequence[str]) -> None:
        self.found: list[tuple[int, list[str]]] = []
        self._texts = texts
        self._cells: list[str] = []
        self._number, self._kind, self._value, self._is_value = 0, "", "", False

    def begin(self, name: str, attributes: dict[str, str]) -> None:
        tag = name.rpartition(":")[2]
        if tag == "row":
            number = attributes.get("r", "")
            self._number = int(number) if number.isascii() and number.isdigit() else self._number + 1
            self._cells = []
        elif tag == "c":
            place = _CELL_PLACE.fullmatch(attributes.get("r", ""))
            column = _column_of(place[1]) if place else len(self._cells)
            if column >= MAX_COLUMNS:
                raise NotAWorkbook("columns")
            self._cells += [""] * (column - len(self._cells))
            self._kind, self._value = attributes.get("t", "n"), ""
        self._is_value = tag in ("v", "t")

    def hear(self, text: str) -> None:
        if self._is_value:
            self._value += text

    def end(self, name: str) -> None:
        tag = name.rpartition(":")[2]
        self._is_value = False
        if tag == "c":
            self._cells.append(self._text())
        elif tag == "row" and any(cell.strip() for cell in self._cells):
            self.found.append((self._number, self._cells))

    def _text(self) -> str:
        if self._kind == "s":
            number = int(self._value) if self._value.isdigit() else -1
            if not 0 <= number < len(self._texts):
                raise NotAWorkbook("text")
            return self._texts[number]
        if self._kind == "n" and self._value:
            return _number_text(self._value)
        return self._value


def _column_of(letters: str) -> int:
    number = 0
    for letter in letters:
        number = number * 26 + ord(letter) - ord("A") + 1
    return number - 1


def _number_text(text: str) -> str:
    """Write a number as people typed it: a telephone number has no exponent, a whole one no decimals."""
    try:
        value = float(text)
    except ValueError:
        return text
    return str(int(value)) if value.is_integer() and abs(value) < 10**15 else repr(value)
