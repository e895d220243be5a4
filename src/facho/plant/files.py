"""The plant as files: CSV (or a workbook), GeoJSON and KML, which have the same columns; read as if from an enemy.

GeoJSON and KML keep a place as a point; a feature without one leaves the place as it is.
"""

import io
import json
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from datetime import datetime
from typing import Any
from xml.parsers import expat
from xml.sax.saxutils import escape, quoteattr

from django.db import transaction
from django.db.models import Q
from django.http import StreamingHttpResponse
from django.utils.translation import gettext as _

from facho.accounts.scope import EVERYTHING, OltScope
from facho.hosts.csv import misshapen, read_rows
from facho.hosts.inventory import EntryProblem, ImportPlan, InventoryError, PlanChanged, bad_rows
from facho.infrastructure.folding import fold
from facho.infrastructure.spreadsheet import SIGNATURE, answer_file, unguard, write_csv
from facho.onus.customers import COORDINATES, Imported
from facho.onus.models import Onu
from facho.plant.boxes import (
    Person,
    facts_of,
    import_plan,
    plan_entries,
    save_entries,
    visible_boxes,
    visible_zones,
)
from facho.plant.entries import BOX, COLUMNS, NAME, SOURCE, TYPE, EntryType, Given, PlantEntry, read_entry, title_of

KINDS = ("csv", "geojson", "kml")
CONTENT_TYPES = {
    "csv": "text/csv; charset=utf-8",
    "geojson": "application/geo+json",
    "kml": "application/vnd.google-earth.kml+xml",
}
# A national network has some hundred thousand customers.
MAX_FEATURES = 500_000
ROWS_AT_ONCE = 1_000
MAX_DEPTH = 64
MAX_TEXT = 10_000
# What is written for people and not read again.
_FOR_PEOPLE = "customer"
_PIECE = 65_536


@dataclass(frozen=True, slots=True)
class PlantFile:
    """The entries of a file, and its features that are no point of the plant."""

    entries: list[PlantEntry]
    left_out: list[EntryProblem]


@dataclass(slots=True)
class _Feature:
    """A feature by its number from 1, with the geometry that it has if that is no point."""

    number: int
    given: dict[str, Given]
    geometry: str = ""
    problem: str = ""


def read_file(content: bytes) -> PlantFile:
    """Read a file of any kind, which its content tells; InventoryError lists what is wrong."""
    if content.startswith(SIGNATURE):
        if is_kmz(content):
            raise InventoryError([EntryProblem(None, _("KMZ is not supported: unpack it and import the KML inside"))])
        return PlantFile(list(_read_table(content)), [])
    start = content.removeprefix(b"\xef\xbb\xbf").lstrip()[:1]
    if start in (b"{", b"["):
        return _entries_of(read_geojson(content))
    if start == b"<":
        return _entries_of(read_kml(content))
    return PlantFile(list(_read_table(content)), [])


def plan_file(content: bytes, scope: OltScope) -> ImportPlan:
    """Plan the import of a file; for a bad one the plan lists what is wrong."""
    try:
        found = read_file(content)
    except InventoryError as error:
        return ImportPlan(tuple(bad_rows(((each.line, each.reason) for each in error.problems), {})))
    return import_plan(plan_entries(found.entries, scope), found.left_out)


def import_plant(
    content: bytes,
    *,
    who: Person,
    scope: OltScope = EVERYTHING,
    source: str = "",
    now: datetime,
    shown: str | None = None,
) -> Imported:
    """Import a file within a scope; see `save_entries`.

    With `shown`, the fingerprint of a plan, PlanChanged is raised and nothing written if the plan differs.
    """
    found = read_file(content)
    with transaction.atomic():
        if shown is not None and shown != plan_file(content, scope).fingerprint:
            raise PlanChanged
        saved = save_entries(found.entries, who=who, scope=scope, source=source, now=now)
    return replace(saved, left_out=(*saved.left_out, *found.left_out))


def answer_plant(kind: str, scope: OltScope) -> StreamingHttpResponse:
    """Send the plant in scope as one of KINDS, while it is read."""
    return answer_file("plant", kind, write_file(kind, scope), content_type=CONTENT_TYPES[kind])


def is_kmz(content: bytes) -> bool:
    """Look at the names in an archive; nothing is unpacked."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            return any(name.lower().endswith(".kml") for name in archive.namelist())
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
        return False


def _read_table(content: bytes) -> Iterator[PlantEntry]:
    rows = read_rows(content)
    header_line, header = next(rows, (1, []))
    titles = {name: name for name in COLUMNS} | {fold(title_of(name)): name for name in COLUMNS}
    columns = [titles.get(fold(name.strip()), "") for name in header]
    named = set(columns)
    if not named or "" in named or len(named) != len(columns) or not named & {"name", "box"}:
        reason = _("the header must be some of %s, separated by commas") % ", ".join(COLUMNS)
        raise InventoryError([EntryProblem(header_line, reason)])
    problems: list[EntryProblem] = []
    entries: list[PlantEntry] = []
    for line, cells in rows:
        if len(cells) != len(columns):
            problems.append(misshapen(line, cells, columns))
            continue
        given = {name: unguard(cell.strip()) for name, cell in zip(columns, cells, strict=True)}
        _read_into(entries, problems, line, given)
    if problems:
        raise InventoryError(sorted(problems, key=lambda problem: problem.line or 0))
    yield from entries


def _read_into(entries: list[PlantEntry], problems: list[EntryProblem], line: int, given: Mapping[str, Given]) -> None:
    try:
        entries.append(read_entry(line, given))
    except InventoryError as error:
        problems += error.problems


def _entries_of(features: Iterable[_Feature]) -> PlantFile:
    entries: list[PlantEntry] = []
    problems: list[EntryProblem] = []
    left_out: list[EntryProblem] = []
    for feature in features:
        if feature.geometry:
            reason = _("only points are read, and this is a %s") % feature.geometry[:40]
            left_out.append(EntryProblem(feature.number, reason))
        elif feature.problem:
            problems.append(EntryProblem(feature.number, feature.problem))
        else:
            _read_into(entries, problems, feature.number, feature.given)
    if problems:
        raise InventoryError(problems)
    return PlantFile(entries, left_out)


def read_geojson(content: bytes) -> Iterator[_Feature]:
    try:
        whole = json.loads(content.decode("utf-8-sig"), parse_constant=_refuse_constant)
    except RecursionError:
        raise InventoryError([EntryProblem(None, _("this is not GeoJSON: it is nested too deeply"))]) from None
    except ValueError as error:
        # Its words name the fault and where it is, and never a value.
        reason = str(getattr(error, "msg", "")) or type(error).__name__
        line = getattr(error, "lineno", None)
        raise InventoryError([EntryProblem(line, _("this is not GeoJSON: %s") % reason)]) from None
    features = whole.get("features") if isinstance(whole, dict) else None
    if not isinstance(features, list) or whole.get("type") != "FeatureCollection":
        raise InventoryError([EntryProblem(None, _("this is not GeoJSON: %s") % "FeatureCollection")])
    if len(features) > MAX_FEATURES:
        raise InventoryError([EntryProblem(None, _("the file has more than %s features") % MAX_FEATURES)])
    for number, feature in enumerate(features, 1):
        yield read_feature(number, feature)


def _refuse_constant(name: str) -> float:
    raise ValueError(name)


def read_feature(number: int, feature: Any) -> _Feature:
    properties = feature.get("properties") if isinstance(feature, dict) else None
    if not isinstance(properties, dict) or not properties:
        return _Feature(number, {}, problem=_("a feature has properties, such as a name"))
    given: dict[str, Given] = {}
    for name in (each for each in COLUMNS if each in properties and each not in COORDINATES):
        value = properties[name]
        if not isinstance(value, str | int | float | None) or isinstance(value, bool):
            return _Feature(number, {}, problem=_("%s is neither a text nor a number") % name)
        given[name] = value
    geometry = feature.get("geometry")
    if geometry is None:
        return _Feature(number, given)
    if not isinstance(geometry, dict) or geometry.get("type") != "Point":
        kind = geometry.get("type") if isinstance(geometry, dict) else None
        return _Feature(number, given, geometry=str(kind))
    point = geometry.get("coordinates")
    if not isinstance(point, list) or not 2 <= len(point) <= 3 or {*map(type, point)} - {int, float}:
        return _Feature(number, given, problem=_("a point is longitude and latitude, two numbers"))
    given["longitude"], given["latitude"] = point[:2]
    return _Feature(number, given)


def read_kml(content: bytes) -> Iterator[_Feature]:
    reader = _KmlReader()
    parser = expat.ParserCreate(namespace_separator=None)
    parser.buffer_text = True
    # Without a document type there are no entities to grow, and nothing is fetched.
    parser.StartDoctypeDeclHandler = reader.refuse
    parser.StartElementHandler, parser.EndElementHandler = reader.begin, reader.end
    parser.CharacterDataHandler = reader.hear
    try:
        parser.Parse(content, True)
    except expat.ExpatError as error:
        words = expat.ErrorString(error.code)
        raise InventoryError([EntryProblem(error.lineno, _("this is not KML: %s") % words)]) from None
    if not reader.is_kml:
        raise InventoryError([EntryProblem(None, _("this is not KML: %s") % "kml")])
    return iter(reader.found)


class _KmlReader:
    """Collects placemarks: their name, their data and their point."""

    _SHAPES = ("LineString", "LinearRing", "Polygon", "MultiGeometry", "Model", "Track", "MultiTrack")

    def __init__(self) -> None:
        self.found: list[_Feature] = []
        self.is_kml = False
        self._path: list[str] = []
        self._mark: _Feature | None = None
        self._data = ""
        self._text = ""

    def refuse(self, *_about: object) -> None:
        raise InventoryError([EntryProblem(None, _("this KML has a document type: remove it"))])

    def begin(self, name: str, attributes: dict[str, str]) -> None:
        tag = name.rpartition(":")[2]
        self.is_kml = self.is_kml or (not self._path and tag == "kml")
        self._path.append(tag)
        self._text = ""
        if len(self._path) > MAX_DEPTH or len(self.found) > MAX_FEATURES:
            raise InventoryError([EntryProblem(None, _("this KML is nested too deeply, or too long"))])
        if tag == "Placemark":
            self._mark = _Feature(len(self.found) + 1, {})
            self.found.append(self._mark)
        elif self._mark is not None and tag in self._SHAPES:
            self._mark.geometry = self._mark.geometry or tag
        elif tag in ("Data", "SimpleData"):
            self._data = attributes.get("name", "")

    def hear(self, text: str) -> None:
        if self._mark is not None and len(self._text) < MAX_TEXT:
            self._text += text

    def end(self, name: str) -> None:
        tag, mark = self._path.pop(), self._mark
        if mark is None:
            return
        inside = self._path[-1] if self._path else ""
        text = self._text.strip()
        if tag == "Placemark":
            self._mark = None
        elif tag == "name" and inside == "Placemark":
            mark.given.setdefault("name", text)
        elif (tag == "value" and inside == "Data") or tag == "SimpleData":
            if self._data in COLUMNS and self._data not in COORDINATES:
                mark.given[self._data] = text
        elif tag == "coordinates" and inside == "Point":
            self._keep_point(mark, text)
        self._text = ""

    def _keep_point(self, mark: _Feature, text: str) -> None:
        parts = text.split(",")
        if 2 <= len(parts) <= 3 and not any(part.split()[1:] for part in parts):
            mark.given["longitude"], mark.given["latitude"] = (part.strip() for part in parts[:2])
        else:
            mark.problem = _("a point is longitude and latitude, two numbers")


def write_file(kind: str, scope: OltScope) -> Iterator[bytes]:
    rows = records(scope)
    if kind == "csv":
        return write_csv(as_table(rows))
    return in_pieces(as_geojson(rows) if kind == "geojson" else as_kml(rows))


def as_table(rows: Iterable[Mapping[str, Given]]) -> Iterator[list[Given]]:
    yield list(COLUMNS)
    for row in rows:
        yield [row.get(name) for name in COLUMNS]


def in_pieces(parts: Iterable[str]) -> Iterator[bytes]:
    waiting: list[str] = []
    length = 0
    for part in parts:
        waiting.append(part)
        length += len(part)
        if length >= _PIECE:
            yield "".join(waiting).encode()
            waiting, length = [], 0
    yield "".join(waiting).encode()


def _properties(row: Mapping[str, Given]) -> dict[str, Given]:
    names = [name for name in (*COLUMNS, _FOR_PEOPLE) if name in row and name not in COORDINATES]
    return {name: row[name] for name in names if name != _FOR_PEOPLE or row[name]}


def as_geojson(rows: Iterable[Mapping[str, Given]]) -> Iterator[str]:
    yield '{"type": "FeatureCollection", "features": ['
    for number, row in enumerate(rows):
        point = None
        if row.get("latitude") is not None:
            point = {"type": "Point", "coordinates": [row["longitude"], row["latitude"]]}
        feature = {"type": "Feature", "geometry": point, "properties": _properties(row)}
        yield (",\n" if number else "\n") + json.dumps(feature, ensure_ascii=False)
    yield "\n]}\n"


def as_kml(rows: Iterable[Mapping[str, Given]]) -> Iterator[str]:
    yield '<?xml version="1.0" encoding="UTF-8"?>\n<kml xmlns="http://www.opengis.net/kml/2.2"><Document>\n'
    for row in rows:
        values = _properties(row)
        name = values.pop("name", None) or values.get(_FOR_PEOPLE) or values.get("serial") or values.get("place")
        data = "".join(
            f"<Data name={quoteattr(key)}><value>{escape('' if value is None else str(value))}</value></Data>"
            for key, value in values.items()
        )
        point = ""
        if row.get("latitude") is not None:
            point = f"<Point><coordinates>{row['longitude']!r},{row['latitude']!r}</coordinates></Point>"
        yield f"<Placemark><name>{escape(str(name))}</name><ExtendedData>{data}</ExtendedData>{point}</Placemark>\n"
    yield "</Document></kml>\n"


def records(scope: OltScope) -> Iterator[dict[str, Given]]:
    """Yield every zone, box and ONU in scope that has a box or a point, by the columns of files."""
    for zone in visible_zones(scope).order_by("name"):
        yield {TYPE: EntryType.ZONE, NAME: zone.name, **{name: getattr(zone, name) for name in COORDINATES}}
    for box in visible_boxes(scope).select_related("zone", "parent", "pon_port__olt").order_by("name"):
        facts = facts_of(box)
        olt, _space, place = facts.port.rpartition(" ")
        yield {
            TYPE: EntryType.BOX,
            NAME: box.name,
            **{each.name: getattr(facts, each.name) for each in fields(facts)},
            "olt": olt,
            "port": place,
        }
    yield from onu_records(scope)


def onu_records(scope: OltScope) -> Iterator[dict[str, Given]]:
    """Read a batch at a time: nothing is held open in the database while a file is sent."""
    placed = Q(attachment__isnull=False) | Q(customer__latitude__isnull=False)
    onus = scope.narrow(Onu.objects.filter(placed, is_present=True))
    names = ("olt__name", "pon_port", "attachment__source", "attachment__box__name", "customer__label")
    onus = onus.select_related("olt", "pon_port", "attachment__box", "customer")
    last = 0
    while batch := list(
        onus.filter(id__gt=last)
        .only("serial", "mac", "onu_id", *names, "customer__latitude", "customer__longitude")
        .order_by("id")[:ROWS_AT_ONCE]
    ):
        last = batch[-1].id
        for onu in batch:
            attachment, customer = getattr(onu, "attachment", None), getattr(onu, "customer", None)
            yield {
                TYPE: EntryType.ONU,
                "serial": onu.serial,
                "mac": onu.mac,
                "olt": onu.olt.name,
                "place": f"{onu.pon_port}/{onu.onu_id}",
                BOX: attachment.box.name if attachment else "",
                SOURCE: attachment.source if attachment else "",
                "customer": customer.label if customer else "",
                **{name: getattr(customer, name, None) for name in COORDINATES},
            }
