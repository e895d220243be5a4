"""The one table of all lists: its columns as data, what a person chose of them, how it is drawn, and as a file.

Choices are in the address, so that a list is shared by its link; a saved view is a name for such an address.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeVar

from django import forms
from django.contrib import messages
from django.core.paginator import Paginator
from django.db.models import Model, OrderBy, QuerySet
from django.http import Http404, HttpRequest, HttpResponse, QueryDict, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from facho.accounts.models import SavedView
from facho.dashboard.shared.page import (
    CURSOR,
    ROWS_PER_PAGE,
    TimelineFilter,
    cursor_of,
    for_users,
    read_id,
    render_part_or_page,
)
from facho.infrastructure.spreadsheet import FILE_TYPES, Cell, answer_file, write_file
from facho.onus.search import MANY
from facho.onus.timeline import load_rows

Row = TypeVar("Row", bound=Model)
SORT, COLUMN, PAGE, EXPORT = "sort", "col", "page", "export"
# Parameters of an address that are no choice.
POSITION = (PAGE, CURSOR, EXPORT)
BATCH = 1_000
# More than anybody keeps in mind.
MOST_VIEWS = 30
MAX_QUERY_LETTERS = 2_000


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column: what it is called, and what of a row is in it.

    `value`, a function or the path of an attribute, is what files have and the text of a cell; `draw` makes the content
    of a cell that is more than text. Lists are sorted by the word `sort`: its name if None, and never by "".
    """

    name: str
    title: str | Promise
    value: str | Callable[[Any], Cell]
    draw: Callable[[Any, datetime], SafeString | str] | None = None
    sort: str | None = None
    look: str = ""
    # False: only for those who choose it.
    is_usual: bool = True

    @property
    def order(self) -> str:
        """The word of an address by which lists are sorted by it; empty if they cannot be."""
        return self.name if self.sort is None else self.sort

    def read(self, row: Any) -> Cell:
        """Read what files have of a row; empty where something on the path is None."""
        if not isinstance(self.value, str):
            return self.value(row)
        for name in self.value.split("."):
            if row is None:
                return ""
            row = getattr(row, name)
        found: Cell = row() if callable(row) else row
        return found


@dataclass(frozen=True, slots=True)
class TableChoice:
    """What a person chose of a table: columns, order, and the rest of the address."""

    columns: tuple[TableColumn, ...]
    sort: str
    query: QueryDict

    @property
    def address(self) -> str:
        """The query string of the choice, without the page number."""
        return self.query.urlencode()

    def with_sort(self, sort: str) -> str:
        changed = self.query.copy()
        changed[SORT] = sort
        return changed.urlencode()

    @property
    def kept(self) -> list[tuple[str, str]]:
        """What the form that narrows the list has to keep."""
        return [(name, value) for name in (SORT, COLUMN) for value in self.query.getlist(name)]

    def with_page(self) -> str:
        """The beginning of a query string that ends with a page."""
        return f"{self.address}&" if self.query else ""


@dataclass(frozen=True, slots=True)
class ListTable:
    """A list of one kind of rows; `orders` are those of a query, by the words of the columns."""

    name: str
    columns: tuple[TableColumn, ...]
    default_sort: str
    orders: Mapping[str, tuple[str | OrderBy, ...]] = field(default_factory=dict)
    # Of a timeline: its column of the database, how its rows are shaped, and the templates of the list and its page.
    time_column: str = ""
    build: Callable[[list[Any]], Iterable[Any]] = list
    templates: tuple[str, str] = ("", "")
    # Orders that an index has, however long the list is.
    indexed: frozenset[str] = frozenset()

    def choose(self, asked: QueryDict) -> TableChoice:
        """Read the choice from an address; what is not known is ignored."""
        named = asked.getlist(COLUMN)
        columns = tuple(each for each in self.columns if (each.name in named if named else each.is_usual))
        words = {each.order for each in self.columns if each.order}
        sort = asked.get(SORT, "")
        query = asked.copy()
        for name in POSITION:
            query.pop(name, None)
        for name in [name for name, values in query.lists() if not any(values)]:
            del query[name]
        usual = tuple(each for each in self.columns if each.is_usual)
        return TableChoice(columns or usual, sort if sort.removeprefix("-") in words else self.default_sort, query)

    def sort(self, rows: QuerySet[Row], choice: TableChoice) -> QuerySet[Row]:
        """Order the rows of a query by the chosen column."""
        ordered = rows.order_by(*self.orders[choice.sort.removeprefix("-")], "pk")
        return ordered.reverse() if choice.sort.startswith("-") else ordered

    def draw(
        self,
        choice: TableChoice,
        rows: Iterable[Any],
        now: datetime,
        *,
        is_small: bool = True,
        has_orders: bool = True,
    ) -> dict[str, Any]:
        """Draw rows, each with an `id` and perhaps a `look`; only small lists have all orders."""
        titles = {each.name: str(each.title) for each in self.columns}
        sortable = {
            each.name for each in self.columns if has_orders and each.order and (is_small or each.order in self.indexed)
        }
        return {
            "name": self.name,
            "heads": [
                {"name": each.name, "title": titles[each.name], "look": each.look}
                | (_sort_link(each, choice) if each.name in sortable else {})
                for each in choice.columns
            ],
            "rows": [
                {
                    "id": row.id,
                    "look": getattr(row, "look", ""),
                    "cells": [_cell(each, titles[each.name], row, now) for each in choice.columns],
                }
                for row in rows
            ],
            "offered": [
                {"name": each.name, "title": titles[each.name], "is_chosen": each in choice.columns}
                for each in self.columns
            ],
            # What the address says besides the columns, for the form that chooses these.
            "other_choices": [(name, text) for name, texts in choice.query.lists() for text in texts if name != COLUMN],
        }


def _sort_link(column: TableColumn, choice: TableChoice) -> dict[str, str]:
    is_up, is_down = choice.sort == column.order, choice.sort == f"-{column.order}"
    address = choice.with_sort(f"-{column.order}" if is_up else column.order)
    return {"address": address, "direction": "ascending" if is_up else "descending" if is_down else ""}


def _cell(column: TableColumn, title: str, row: Any, now: datetime) -> dict[str, Any]:
    content = column.draw(row, now) if column.draw else text_cell(column.read(row))
    look = column.look if content else f"{column.look} empty".strip()
    return {"title": title, "look": look, "content": content or "—"}


def text_cell(text: object) -> SafeString | str:
    return format_html("<bdi>{}</bdi>", text) if text else ""


def time_value(moment: datetime | None) -> str:
    return moment.isoformat() if moment else ""


def load_table(
    request: HttpRequest,
    table: ListTable,
    rows: QuerySet[Any],
    build: Callable[[list[Any]], Iterable[Any]] | None = None,
) -> dict[str, Any]:
    choice, now = table.choose(request.GET), timezone.now()
    context: dict[str, Any] = {"now": now, "choice": choice, "query": choice.with_page(), "many": MANY}
    # Beyond MANY only the time has an order that an index serves.
    is_small = choice.sort == table.default_sort or rows.order_by().values("pk")[: MANY + 1].count() <= MANY
    if choice.sort == table.default_sort or not is_small:
        page = load_rows(rows, table.time_column, cursor_of(request), ROWS_PER_PAGE)
        found, context["is_first"], context["page"] = page.rows, cursor_of(request) is None, page
    else:
        numbered = Paginator(table.sort(rows, choice), ROWS_PER_PAGE).get_page(request.GET.get(PAGE))
        found, context["is_first"], context["numbered"] = list(numbered), False, numbered
    drawn = table.draw(choice, (build or table.build)(found), now)
    return {**context, "table": drawn, "is_small": is_small, **table_context(table, choice)}


def answer_list(request: HttpRequest, table: ListTable, form: TimelineFilter, rows: QuerySet[Any]) -> HttpResponseBase:
    """Answer a page of a list, the part of it that refreshes itself, or all of it as a file."""
    if is_export(request):
        return export_table(request, table, in_batches(rows, table.build))
    context = {"here": table.name, "form": form, **load_table(request, table, rows)}
    return render_part_or_page(request, *table.templates, context)


def is_export(request: HttpRequest) -> bool:
    return request.GET.get(EXPORT, "") in FILE_TYPES


def export_table(request: HttpRequest, table: ListTable, batches: Iterable[Iterable[Any]]) -> StreamingHttpResponse:
    """Send the chosen columns of all rows as a file."""
    choice = table.choose(request.GET)
    rows = ([each.read(row) for each in choice.columns] for batch in batches for row in batch)
    names = [each.name for each in choice.columns]
    return answer_file(table.name, request.GET[EXPORT], write_file(request.GET[EXPORT], names, rows))


def in_batches(rows: QuerySet[Any], build: Callable[[list[Any]], Iterable[Any]] = list) -> Iterator[Iterable[Any]]:
    """Yield all rows, the latest first, one query per batch: nothing is held open in the database."""
    last: Model | None = None
    while True:
        beyond = rows.filter(pk__lt=last.pk) if last else rows
        batch = list(beyond.order_by("-pk")[:BATCH])
        if not batch:
            return
        yield build(batch)
        last = batch[-1]


def table_context(table: ListTable, choice: TableChoice) -> dict[str, Any]:
    return {"table_page": reverse(table.name), "kinds": list(FILE_TYPES), "choice": choice}


class ViewForm(forms.Form):
    page = forms.SlugField(max_length=40)
    name = forms.CharField(max_length=60)


# The lists that have views, by the names of their addresses.
PAGES = ("onus", "olts", "boxes", "events", "outages", "executions", "violations", "reports")


@require_http_methods(["GET", "HEAD", "POST"])
@for_users
def saved_views(request: HttpRequest) -> HttpResponse:
    given = request.POST if request.method == "POST" else request.GET
    page = given.get("page", "")
    if page not in PAGES:
        raise Http404
    # Only what an address may hold, however it came here.
    query = QueryDict(given.get("query", "")[:MAX_QUERY_LETTERS]).urlencode()
    mine = SavedView.objects.filter(user_id=request.user.pk or 0, page=page)
    if request.method == "POST":
        _save_view(request, mine, query)
        return redirect(f"{reverse(page)}?{query}")
    views = [
        (each.id, each.name, f"{reverse(page)}?{each.query}", each.query == query) for each in mine.order_by("name")
    ]
    context = {"here": page, "page": page, "query": query, "views": views, "list_address": f"{reverse(page)}?{query}"}
    return render_part_or_page(request, "shared/_views.html", "shared/views.html", context)


def _save_view(request: HttpRequest, mine: QuerySet[SavedView], query: str) -> None:
    """Save a view; a name that is taken gets the new choice."""
    form = ViewForm(request.POST)
    if not form.is_valid():
        messages.error(request, _("The view was not saved: give it a name of at most 60 characters."))
        return
    name, page = form.cleaned_data["name"], form.cleaned_data["page"]
    if not mine.filter(name=name).update(query=query):
        if mine.count() >= MOST_VIEWS:
            messages.error(request, _("The view was not saved: delete one of your %s views first.") % MOST_VIEWS)
            return
        view = SavedView(user_id=request.user.pk or 0, page=page, name=name, query=query)
        SavedView.objects.bulk_create([view], ignore_conflicts=True)
    messages.success(request, _("View “%(name)s” saved.") % {"name": name})


@require_POST
@for_users
def delete_view(request: HttpRequest, view_id: int) -> HttpResponse:
    """Delete one's own view; the list stays as it is shown."""
    view = get_object_or_404(SavedView, pk=view_id, user_id=request.user.pk)
    view.delete()
    messages.success(request, _("View “%(name)s” deleted.") % {"name": view.name})
    return redirect(f"{reverse(view.page)}?{view.query}")


def posted_ids(request: HttpRequest) -> list[int]:
    """Read the ids of the selected rows; invalid ones are ignored."""
    texts: Sequence[str] = request.POST.getlist("id")[: 10 * ROWS_PER_PAGE]
    return [found for text in texts if (found := read_id(text))]
