"""The pages of the plant: boxes with their ONUs and forms, zones, files, and what the inferred tree offers."""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.db.models import Count, F, Q, QuerySet
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_http_methods, require_safe

from facho.accounts.scope import OltScope, scope_of
from facho.dashboard.light.views import light_line
from facho.dashboard.onu.list import listed_onus, plain_table
from facho.dashboard.onu.views import find_onu
from facho.dashboard.shared.import_page import ImportPage
from facho.dashboard.shared.page import (
    ROWS_PER_PAGE,
    ListFilter,
    choice_field,
    for_operators,
    for_users,
    may_operate,
    must_operate,
    named_olts,
    named_zones,
    offer,
    read_id,
    render_part_or_page,
    search_field,
)
from facho.dashboard.shared.table import (
    PAGE,
    ListTable,
    TableColumn,
    export_table,
    in_batches,
    is_export,
    table_context,
)
from facho.hosts.inventory import InventoryError
from facho.onus.models import PonPort
from facho.plant import boxes as plant_boxes
from facho.plant.entries import COLUMNS, NAME, EntryType, Given, read_entry
from facho.plant.files import KINDS, answer_plant, import_plant, plan_file
from facho.plant.map import BoxCounts, count_onus, load_box_breaks, load_box_findings
from facho.plant.models import Box, BoxKinds, OnuAttachment, OnuBox, Zone
from facho.polling.domain.plant import BoxLook

# Offered while a name is typed; more would weigh more than the page.
MOST_OFFERED = 500
MOST_ONUS = 300
NO_ZONE, NO_PLACE = "none", "no-place"
LOOKS: dict[BoxLook, Any] = {
    BoxLook.DARK: gettext_lazy("dark"),
    BoxLook.SOME_OFFLINE: gettext_lazy("some offline"),
    BoxLook.WEAK: gettext_lazy("weak light"),
    BoxLook.WELL: gettext_lazy("all well"),
    BoxLook.UNKNOWN: gettext_lazy("unknown"),
}


@dataclass(frozen=True, slots=True)
class BoxLine:
    id: int
    box: Box
    counts: BoxCounts

    @property
    def look(self) -> str:
        return f"box-{self.counts.look}"


class BoxFilterForm(ListFilter):
    """Name, OLT, zone and kind; an invalid choice matches none."""

    ids = "boxes-%s"
    q = search_field(gettext_lazy("Search"), gettext_lazy("box or zone"))
    olt = choice_field(gettext_lazy("OLT"))
    zone = choice_field(gettext_lazy("Zone"))
    kind = choice_field(gettext_lazy("Kind"), [*BoxKinds.choices, (NO_PLACE, gettext_lazy("without coordinates"))])

    def __init__(self, data: Any, scope: OltScope) -> None:
        super().__init__(data, scope)
        offer(self, "zone", [("", _("all")), (NO_ZONE, _("no zone")), *named_zones(scope)])

    def find(self) -> QuerySet[Box]:
        boxes = _named_boxes(self.scope)
        if not self.is_valid():
            return boxes.none()
        values = self.cleaned_data
        for word in values["q"].split():
            boxes = boxes.filter(Q(name__icontains=word) | Q(zone__name__icontains=word))
        if values["olt"]:
            boxes = boxes.filter(pon_port__olt_id=int(values["olt"]))
        if values["zone"]:
            is_in = Q(zone__isnull=True) if values["zone"] == NO_ZONE else Q(zone_id=int(values["zone"]))
            boxes = boxes.filter(is_in)
        if values["kind"] == NO_PLACE:
            return boxes.filter(latitude__isnull=True)
        return boxes.filter(kind=values["kind"]) if values["kind"] else boxes


def box_lines(boxes: list[Box]) -> list[BoxLine]:
    counts = count_onus(boxes)
    return [BoxLine(box.id, box, counts[box.id]) for box in boxes]


def _draw_name(line: BoxLine, now: datetime) -> SafeString:
    return format_html('<a id="box-{}" href="{}"><bdi>{}</bdi></a>', line.id, reverse("box", args=[line.id]), line.box)


def draw_look(counts: BoxCounts) -> SafeString:
    return format_html('<span class="box-mark box-{}">{}</span>', counts.look, LOOKS[counts.look])


def _draw_onus(line: BoxLine, now: datetime) -> SafeString | str:
    if not line.counts.total:
        return ""
    return format_html('{}<span class="muted">/{}</span>', line.counts.online, line.counts.total)


def _draw_feeder(line: BoxLine, now: datetime) -> SafeString | str:
    feeder = line.box.parent
    return format_html('<a href="{}"><bdi>{}</bdi></a>', reverse("box", args=[feeder.id]), feeder) if feeder else ""


BOX_TABLE = ListTable(
    "boxes",
    (
        TableColumn("name", gettext_lazy("Name"), "box.name", _draw_name, look="short"),
        TableColumn("state", gettext_lazy("State"), "counts.look", lambda line, now: draw_look(line.counts), sort=""),
        TableColumn("onus", gettext_lazy("ONUs online"), "counts.online", _draw_onus, sort="", look="right short"),
        TableColumn("kind", gettext_lazy("Kind"), "box.get_kind_display"),
        TableColumn("zone", gettext_lazy("Zone"), "box.zone.name"),
        TableColumn("fed_by", gettext_lazy("Fed by"), "box.parent.name", _draw_feeder),
        TableColumn(
            "port",
            gettext_lazy("PON port"),
            lambda line: plant_boxes.words_of_port(line.box.pon_port) if line.box.pon_port else "",
            look="mono",
        ),
        TableColumn(
            "outputs",
            gettext_lazy("Outputs"),
            "box.outputs",
            lambda line, now: f"1:{line.box.outputs}" if line.box.outputs else "",
            look="right short",
        ),
        TableColumn(
            "place",
            gettext_lazy("Coordinates"),
            lambda line: "" if line.box.latitude is None else f"{line.box.latitude}, {line.box.longitude}",
            sort="",
            look="mono",
            is_usual=False,
        ),
    ),
    "name",
    {
        "name": ("name",),
        "kind": ("kind", "name"),
        "zone": (F("zone__name").asc(nulls_last=True), "name"),
        "fed_by": (F("parent__name").asc(nulls_last=True), "name"),
        "port": ("pon_port__olt__name", "pon_port__frame", "pon_port__slot", "pon_port__port", "name"),
        "outputs": (F("outputs").asc(nulls_last=True), "name"),
    },
)


@require_safe
@for_users
def boxes_page(request: HttpRequest) -> HttpResponseBase:
    scope, now, choice = scope_of(request.user), timezone.now(), BOX_TABLE.choose(request.GET)
    form = BoxFilterForm(request.GET, scope)
    boxes = form.find()
    if is_export(request):
        return export_table(request, BOX_TABLE, in_batches(boxes, box_lines))
    page = Paginator(BOX_TABLE.sort(boxes, choice), ROWS_PER_PAGE).get_page(request.GET.get(PAGE))
    context = {
        "here": "map",
        "now": now,
        "form": form,
        "page": page,
        "table": BOX_TABLE.draw(choice, box_lines(list(page)), now),
        "query": choice.with_page(),
        "choice": choice,
        "may_operate": may_operate(request),
        **table_context(BOX_TABLE, choice),
    }
    return render_part_or_page(request, "plant/box_list.html", "plant/boxes.html", context)


def find_box(request: HttpRequest, box_id: int) -> Box:
    return get_object_or_404(_named_boxes(scope_of(request.user)), id=box_id)


def _named_boxes(scope: OltScope) -> QuerySet[Box]:
    return plant_boxes.visible_boxes(scope).select_related("zone", "parent", "pon_port__olt")


@require_safe
@for_users
def box_page(request: HttpRequest, box_id: int) -> HttpResponse:
    """Show a box with what it feeds and its ONUs, those that are offline first."""
    box, scope, now = find_box(request, box_id), scope_of(request.user), timezone.now()
    fed = list(_named_boxes(scope).filter(parent=box).order_by("name"))
    counts = count_onus([box, *fed])
    lines = [BoxLine(each.id, each, counts[each.id]) for each in fed]
    onus = scope.narrow(listed_onus().filter(attachment__box=box, is_present=True))
    count = onus.order_by().count()
    context = {
        "here": "map",
        "now": now,
        "box": box,
        "counts": counts[box.id],
        "look": draw_look(counts[box.id]),
        "fed": BOX_TABLE.draw(BOX_TABLE.choose(QueryDict()), lines, now, has_orders=False),
        "table": plain_table(onus[:MOST_ONUS]),
        "onus": count,
        "is_overfull": box.outputs is not None and count + len(fed) > box.outputs,
        "port_words": plant_boxes.words_of_port(box.pon_port) if box.pon_port else "",
        "may_operate": may_operate(request),
        "findings": [light_line(each, now) for each in load_box_findings(box, now)],
        "breaks": load_box_breaks(box),
    }
    return render(request, "plant/box.html", context)


def _typed_field(label: Any, max_length: int, help_text: Any = "", **attributes: str) -> forms.CharField:
    widget = forms.TextInput(attrs={**attributes, "autocomplete": "off"})
    return forms.CharField(label=label, required=False, max_length=max_length, help_text=help_text, widget=widget)


class PlantForm(forms.Form):
    kind_of_entry = EntryType.ZONE
    name = forms.CharField(label=gettext_lazy("Name"), max_length=80)
    latitude = _typed_field(
        gettext_lazy("Latitude"),
        60,
        gettext_lazy("Degrees, such as 4.609710. Both may be pasted here, as in 4.609710, -74.081750."),
        inputmode="text",
    )
    longitude = _typed_field(gettext_lazy("Longitude"), 60, inputmode="text")

    def __init__(self, data: Any = None, *, initial: dict[str, Any] | None = None) -> None:
        super().__init__(data, initial=initial, auto_id="plant-%s", label_suffix="")

    def save(self, request: HttpRequest, present_name: str = "") -> bool:
        """Save what was typed; blame the fields that are wrong."""
        if not self.is_valid():
            return False
        given: dict[str, Given] = {"type": self.kind_of_entry.value, **self.cleaned_data}
        try:
            entry = read_entry(None, given)
            if present_name:
                renamed = {**entry.values, NAME: str(entry.key)}
                entry = replace(entry, key=present_name, values=renamed)
            elif self._is_taken(str(entry.key)):
                self.add_error(NAME, _("This name is taken."))
                return False
            plant_boxes.save_entries([entry], who=request.user, scope=scope_of(request.user), now=timezone.now())
        except InventoryError as error:
            for problem in error.problems:
                reason = f"{problem.reason[:1].upper()}{problem.reason[1:]}."
                self.add_error(problem.column if problem.column in self.fields else None, reason)
            return False
        messages.success(request, _("Saved: %(name)s.") % {"name": entry.values.get(NAME) or entry.key})
        return True

    def _is_taken(self, name: str) -> bool:
        rows: Any = Zone.objects if self.kind_of_entry is EntryType.ZONE else Box.objects
        return bool(rows.filter(name=name).exists())


class BoxForm(PlantForm):
    kind_of_entry = EntryType.BOX
    kind = forms.ChoiceField(label=gettext_lazy("Kind"), choices=BoxKinds.choices)
    zone = forms.ChoiceField(label=gettext_lazy("Zone"), required=False)
    fed_by = _typed_field(
        gettext_lazy("Fed by"),
        80,
        gettext_lazy("The box that feeds it. Empty: fed by the OLT itself."),
        list="boxes-known",
    )
    olt = forms.ChoiceField(label=gettext_lazy("OLT"), required=False)
    port = _typed_field(
        gettext_lazy("PON port"),
        20,
        gettext_lazy("Frame, slot and port, as in 0/1/3. A box that is fed by another has its port."),
        placeholder="0/1/3",
    )
    outputs = _typed_field(
        gettext_lazy("Outputs"), 6, gettext_lazy("How many fibres leave its splitter: 8 for 1:8."), inputmode="numeric"
    )
    field_order = ("name", "kind", "zone", "fed_by", "olt", "port", "outputs", "latitude", "longitude")

    def __init__(self, data: Any, scope: OltScope, *, initial: dict[str, Any] | None = None) -> None:
        super().__init__(data, initial=initial)
        zones = plant_boxes.visible_zones(scope).order_by("name").values_list("name", flat=True)
        offer(self, "zone", [("", _("no zone")), *((name, name) for name in zones)])
        olts = [(name, name) for _pk, name in named_olts(scope)]
        offer(self, "olt", [("", _("none, or that of the box before it")), *olts])

    def clean(self) -> dict[str, Any]:
        """A box that stays behind another one keeps its port: what is shown of it was not typed."""
        values = super().clean() or {}
        is_same = values.get("olt") == self.initial.get("olt") and values.get("port") == self.initial.get("port")
        if values.get("fed_by") and is_same:
            values.pop("olt", None)
            values.pop("port", None)
        return values


@require_http_methods(["GET", "HEAD", "POST"])
@for_operators
def box_edit(request: HttpRequest, box_id: int | None = None) -> HttpResponse:
    box, scope = find_box(request, box_id) if box_id else None, scope_of(request.user)
    form = BoxForm(request.POST if request.method == "POST" else None, scope, initial=_typed(box) if box else None)
    if request.method == "POST" and form.save(request, box.name if box else ""):
        saved = plant_boxes.visible_boxes(scope).filter(name=" ".join(form.cleaned_data["name"].split())).first()
        return redirect("box", saved.id) if saved else redirect("boxes")
    known = plant_boxes.visible_boxes(scope).order_by("name").values_list("name", flat=True)[:MOST_OFFERED]
    return render(request, "plant/box_form.html", {"here": "map", "form": form, "box": box, "known": known})


def _typed(box: Box) -> dict[str, Any]:
    facts = plant_boxes.facts_of(box)
    olt, _space, port = facts.port.rpartition(" ")
    names = ("kind", "zone", "fed_by", "outputs", "latitude", "longitude")
    values = {name: getattr(facts, name) for name in names}
    return {"name": box.name, "olt": olt, "port": port, **{k: "" if v is None else v for k, v in values.items()}}


@require_http_methods(["GET", "HEAD", "POST"])
@for_operators
def box_delete(request: HttpRequest, box_id: int) -> HttpResponse:
    box = find_box(request, box_id)
    if request.method == "POST":
        plant_boxes.delete_box(box, who=request.user)
        messages.success(request, _("%(name)s was deleted.") % {"name": box.name})
        return redirect("boxes")
    lost = {"onus": OnuAttachment.objects.filter(box=box).count(), "fed": Box.objects.filter(parent=box).count()}
    return render(request, "plant/box_delete.html", {"here": "map", "box": box, **lost})


@require_http_methods(["GET", "HEAD", "POST"])
@for_users
def zones_page(request: HttpRequest) -> HttpResponse:
    scope = scope_of(request.user)
    chosen = _posted_zone(request, scope)
    wants_new = request.method == "POST" and "zone" not in request.POST
    new = PlantForm(request.POST if wants_new else None)
    changed = PlantForm(request.POST) if chosen else None
    if chosen and "delete" in request.POST:
        plant_boxes.delete_zone(chosen, who=request.user)
        messages.success(request, _("%(name)s was deleted; its boxes stay.") % {"name": chosen.name})
        return redirect("zones")
    if (wants_new and new.save(request)) or (chosen and changed and changed.save(request, chosen.name)):
        return redirect("zones")
    boxes = Count("boxes", filter=Q(boxes__in=plant_boxes.visible_boxes(scope)))
    text = request.GET.get("q", "").strip()[:100]
    rows = plant_boxes.visible_zones(scope).filter(name__icontains=text).annotate(counted=boxes).order_by("name")
    lines = [
        {
            "zone": zone,
            "boxes": zone.counted,
            "form": changed if chosen and changed and zone.id == chosen.id else _zone_form(zone),
        }
        for zone in rows
    ]
    may_edit = may_operate(request) and scope.is_everything
    context = {"here": "map", "lines": lines, "new": new, "may_edit": may_edit, "q": text}
    return render(request, "plant/zones.html", context)


def _posted_zone(request: HttpRequest, scope: OltScope) -> Zone | None:
    """Return the zone to change; PermissionDenied for people with a limited scope."""
    if request.method != "POST":
        return None
    must_operate(request)
    if not scope.is_everything:
        raise PermissionDenied(_("This affects OLTs outside your scope."))
    return get_object_or_404(Zone, id=read_id(request.POST["zone"])) if "zone" in request.POST else None


def _zone_form(zone: Zone) -> PlantForm:
    point = {name: "" if (value := getattr(zone, name)) is None else value for name in ("latitude", "longitude")}
    form = PlantForm(initial={"name": zone.name, **point})
    form.auto_id = f"zone-{zone.id}-%s"
    return form


@require_http_methods(["GET", "HEAD", "POST"])
@for_operators
def inferred_boxes(request: HttpRequest, pon_port_id: int) -> HttpResponse:
    """Offer the boxes that the inferred tree of a port has, and make them when that is confirmed."""
    ports = scope_of(request.user).narrow(PonPort.objects.select_related("olt"))
    port = get_object_or_404(ports, id=pon_port_id)
    if request.method == "POST":
        counts = plant_boxes.save_inferred(port, who=request.user)
        words = {"boxes": counts["boxes"], "onus": counts["onus"]}
        messages.success(request, _("%(boxes)s boxes created, %(onus)s ONUs assigned to boxes.") % words)
        return redirect(f"{reverse('boxes')}?olt={port.olt_id}")
    context = {
        "here": "map",
        "port": port,
        "port_words": plant_boxes.words_of_port(port),
        "offers": plant_boxes.plan_inferred(port),
        "has_tree": OnuBox.objects.filter(pon_port=port, events__gt=0).exists(),
    }
    return render(request, "plant/inferred.html", context)


class OnuBoxForm(forms.Form):
    """The name of the box that ONUs are put on; empty takes them off."""

    box = _typed_field(gettext_lazy("Box"), 80, gettext_lazy("Empty: on no box."), list="boxes-known")

    def __init__(self, data: Any, scope: OltScope, **kwargs: Any) -> None:
        super().__init__(data, label_suffix="", **kwargs)
        self._scope = scope

    def clean_box(self) -> Box | None:
        name = " ".join(self.cleaned_data["box"].split())
        box = plant_boxes.visible_boxes(self._scope).filter(name=name).first() if name else None
        if name and box is None:
            raise forms.ValidationError(_("There is no box “%s”.") % name)
        return box


@require_http_methods(["GET", "HEAD", "POST"])
@for_operators
def onu_box(request: HttpRequest, onu_id: int) -> HttpResponse:
    """Put one ONU on a box, or take it off; for operators."""
    onu, scope = find_onu(request, onu_id), scope_of(request.user)
    stored = OnuAttachment.objects.filter(onu_id=onu.id).select_related("box").first()
    initial = {"box": stored.box.name if stored else request.GET.get("box", "")[:80]}
    form = OnuBoxForm(request.POST if request.method == "POST" else None, scope, initial=initial)
    if request.method == "POST" and form.is_valid():
        moved = plant_boxes.put_on_box([onu.id], form.cleaned_data["box"], who=request.user)
        if not moved.elsewhere:
            messages.success(request, _("Box saved.") if moved.before else _("Nothing was changed."))
            return redirect("onu", onu_id=onu.id)
        form.add_error("box", _("This box is on another PON port."))
    known = (
        plant_boxes.visible_boxes(scope).filter(Q(pon_port=onu.pon_port_id) | Q(pon_port__isnull=True)).order_by("name")
    )
    context = {"here": "onus", "onu": onu, "form": form, "known": known.values_list("name", flat=True)[:MOST_OFFERED]}
    return render(request, "plant/onu_box.html", context)


PLANT_IMPORT = ImportPage(
    pending="plant_import",
    template="plant/import.html",
    address="plant-import",
    address_after="boxes",
    file_label=gettext_lazy("CSV, GeoJSON, KML or Excel workbook"),
    accepts=".csv,.txt,.tsv,.xlsx,.geojson,.json,.kml",
    example="name,zone,latitude,longitude\nCTO 12,Centro,4.609710,-74.081750",
    too_large=gettext_lazy("The file is too large: import it in parts, or with `facho plant import`."),
    changed_meanwhile=gettext_lazy("Nothing was imported: the plant changed meanwhile. Check the changes below again."),
    saved=gettext_lazy("%(written)s written, %(unchanged)s unchanged, %(left_out)s left out"),
    plan=plan_file,
    save=import_plant,
    context={"here": "map", "columns": COLUMNS, "kinds": KINDS},
)


@require_http_methods(["GET", "HEAD", "POST"])
@for_operators
def plant_import(request: HttpRequest) -> HttpResponse:
    """Import zones, boxes and their ONUs from a file; for operators, within their OLTs."""
    return PLANT_IMPORT.answer(request)


@require_safe
@for_users
def plant_export(request: HttpRequest, kind: str) -> HttpResponseBase:
    if kind not in KINDS:
        raise Http404
    return answer_plant(kind, scope_of(request.user))
