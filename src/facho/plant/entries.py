"""Reads what files, forms and programs say of a zone, a box or an ONU: one set of columns for all."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from django.utils.functional import Promise
from django.utils.text import capfirst
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from facho.hosts.inventory import EntryProblem, InventoryError
from facho.onus.customers import COORDINATES, KEYS, CustomerKey, read_coordinate, read_key
from facho.plant.models import AttachmentSources, BoxKinds

MAX_NAME = 80
MIN_OUTPUTS, MAX_OUTPUTS = 2, 256
TYPE, NAME, BOX, SOURCE = "type", "name", "box", "source"
# Every column of a file, in the order in which it is written.
COLUMNS = (
    *(TYPE, NAME, "kind", "zone", "fed_by", "olt", "port", "outputs"),
    *(*COORDINATES, "serial", "mac", "place", BOX, SOURCE),
)
_PLACE = re.compile(r"[0-9]{1,5}/[0-9]{1,5}/[0-9]{1,5}")
_TWO_NUMBERS = re.compile(r"(-?[0-9]+\.[0-9]+),(-?[0-9]+\.[0-9]+)|(\S+?)(?:\s*;\s*|,?\s+)(\S+)")

Given = str | float | None


class EntryType(StrEnum):
    ZONE = "zone"
    BOX = "box"
    ONU = "onu"


_TITLES: dict[str, Promise] = {
    "name": gettext_lazy("Name"),
    "kind": gettext_lazy("Kind"),
    "zone": gettext_lazy("Zone"),
    "fed_by": gettext_lazy("Fed by"),
    "port": gettext_lazy("PON port"),
    "outputs": gettext_lazy("Outputs"),
    "latitude": gettext_lazy("Latitude"),
    "longitude": gettext_lazy("Longitude"),
    "box": gettext_lazy("Box"),
    "source": gettext_lazy("Source"),
}


@dataclass(frozen=True, slots=True)
class PlantEntry:
    """What is given of a zone, a box or an ONU; what is not named stays. A zone or box is named by its present name."""

    line: int | None
    type: EntryType
    key: str | CustomerKey
    values: Mapping[str, Given]


def read_entry(line: int | None, given: Mapping[str, Given]) -> PlantEntry:
    """Read a zone, a box or an ONU; InventoryError lists what is wrong."""
    problems: list[EntryProblem] = []
    kind = _type_of(given)
    if kind is None:
        reason = _("the type is one of: %s") % ", ".join(EntryType)
        raise InventoryError([EntryProblem(line, reason, column=TYPE)])
    is_onu = kind is EntryType.ONU
    key = read_key({name: _text(given, name) for name in KEYS}) if is_onu else _name_in(given, NAME)
    values: dict[str, Given] = {}
    for name in _WANTED[kind]:
        if name in given or (name == "port" and "olt" in given):
            try:
                values[name] = _READERS[name](given)
            except ValueError as error:
                problems.append(EntryProblem(line, str(error), column=name))
    values |= _read_point(line, given, problems)
    if not key:
        missing = _("serial, mac, or olt and place are missing") if is_onu else _("the name is missing")
        problems.append(EntryProblem(line, missing, column="serial" if is_onu else NAME))
    elif isinstance(key, str) and (wrong := wrong_name(key)):
        problems.append(EntryProblem(line, wrong, column=NAME))
    if problems or not key:
        raise InventoryError(problems)
    return PlantEntry(line, kind, key, values)


def wrong_name(name: str) -> str:
    """Tell why a name cannot be one; empty if it can."""
    if not name:
        return _("the name is missing")
    if len(name) > MAX_NAME:
        return _("%(name)s is longer than %(limit)s characters") % {"name": "name", "limit": MAX_NAME}
    return "" if name.isprintable() else _("the name has a character that cannot be shown")


def tidy_name(text: str) -> str:
    return " ".join(text.split())


def split_point(latitude: str, longitude: str) -> tuple[str, str]:
    """Split coordinates that were pasted into the first field, as in `4.6097, -74.0817`."""
    pair = None if longitude.strip() else _TWO_NUMBERS.fullmatch(latitude.strip().strip("()"))
    return (pair[1] or pair[3], pair[2] or pair[4]) if pair else (latitude, longitude)


def _type_of(given: Mapping[str, Given]) -> EntryType | None:
    type_text = _text(given, TYPE).casefold()
    if type_text:
        return next((each for each in EntryType if type_text in (each, _(each).casefold())), None)
    has_onu = _text(given, "serial") or _text(given, "mac") or _text(given, "place")
    return EntryType.ONU if has_onu else EntryType.BOX


def _text(given: Mapping[str, Given], name: str) -> str:
    value = given.get(name)
    return "" if value is None else str(value).strip()


def _name_in(given: Mapping[str, Given], name: str) -> str:
    return tidy_name(_text(given, name))


def _read_kind(given: Mapping[str, Given]) -> str:
    text = _text(given, "kind").casefold() or BoxKinds.CTO.value
    for kind in BoxKinds:
        if text in (kind.value, str(kind.label).casefold(), *str(kind.label).casefold().split(" / ")):
            return kind.value
    raise ValueError(_("the kind is one of: %s") % ", ".join(BoxKinds.values))


def _read_source(given: Mapping[str, Given]) -> str:
    text = _text(given, SOURCE)
    if text and text not in AttachmentSources.values:
        raise ValueError(_("the source is one of: %s") % ", ".join(AttachmentSources.values))
    return text


def _read_outputs(given: Mapping[str, Given]) -> int | None:
    # People write what is on the splitter, and spreadsheets write 8.0.
    text = _text(given, "outputs").removeprefix("1:").removesuffix(".0")
    if not text:
        return None
    if not text.isascii() or not text.isdigit() or len(text) > 3 or not MIN_OUTPUTS <= int(text) <= MAX_OUTPUTS:
        raise ValueError(_("outputs is a number from %(least)s to %(most)s, such as 8 for 1:8")
                         % {"least": MIN_OUTPUTS, "most": MAX_OUTPUTS})  # fmt: skip
    return int(text)


def _read_port(given: Mapping[str, Given]) -> str:
    olt, place = _text(given, "olt"), _text(given, "port").replace("-", "/").replace(" ", "")
    if bool(olt) != bool(place):
        raise ValueError(_("olt and port belong together"))
    if place and not _PLACE.fullmatch(place):
        raise ValueError(_("a PON port is frame, slot and port, as in 0/1/3"))
    return f"{olt} {place}".strip()


def _read_point(line: int | None, given: Mapping[str, Given], problems: list[EntryProblem]) -> dict[str, Given]:
    if not set(COORDINATES) & given.keys():
        return {}
    texts = split_point(*(_text(given, name) for name in COORDINATES))
    values: dict[str, Given] = {}
    for name, text in zip(COORDINATES, texts, strict=True):
        try:
            values[name] = read_coordinate(name, text)
        except ValueError as error:
            problems.append(EntryProblem(line, str(error), column=name))
    if len(values) == len(COORDINATES) and (values["latitude"] is None) != (values["longitude"] is None):
        problems.append(EntryProblem(line, _("latitude and longitude belong together"), column="longitude"))
    return values


_WANTED: dict[EntryType, tuple[str, ...]] = {
    EntryType.ZONE: (),
    EntryType.BOX: ("kind", "zone", "fed_by", "port", "outputs"),
    EntryType.ONU: (BOX, SOURCE),
}
_READERS: dict[str, Callable[[Mapping[str, Given]], Given]] = {
    "kind": _read_kind,
    "zone": lambda given: _name_in(given, "zone"),
    "fed_by": lambda given: _name_in(given, "fed_by"),
    "port": _read_port,
    "outputs": _read_outputs,
    BOX: lambda given: _name_in(given, BOX),
    SOURCE: _read_source,
}


def title_of(column: str) -> str:
    return str(capfirst(str(_TITLES.get(column, column))))
