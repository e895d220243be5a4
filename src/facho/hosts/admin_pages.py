"""What the admin pages of all rooms share: rows that people only look at, and OLTs without their secrets."""

import json
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.core.paginator import Paginator
from django.db.models import Model, QuerySet
from django.http import HttpRequest
from django.utils import timezone, translation
from django.utils.functional import Promise, cached_property
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.timezone import localtime
from django.utils.translation import gettext_lazy as _

from facho.hosts.models import Olt
from facho.hosts.olt_entry import SECRET_COLUMNS

# Pages end here; who looks for more narrows the list.
MANY = 10_000


def without_secrets(path: str = "olt") -> list[str]:
    """Name the columns of a related OLT that a list must not load: each would be decrypted, or fail to be."""
    return [f"{path}__{name}" for name in SECRET_COLUMNS]


def write_down(request: HttpRequest, rows: Iterable[Model], action: int, message: str | Promise) -> None:
    """Leave what was done to rows in the admin's log; in the installation's language, since readers differ."""
    with translation.override(settings.LANGUAGE_CODE):
        LogEntry.objects.log_actions(request.user.pk or 0, list(rows), action, change_message=str(message))


def badge(look: str, words: object) -> SafeString:
    """Draw a state: its words behind the shape of its look, which is good, warn, bad, worst or quiet."""
    return format_html('<span class="facho-badge {}">{}</span>', look, words)


def short_time(moment: datetime | None) -> SafeString | str:
    """Write a moment in local time, so that a narrow column breaks it where people would."""
    if moment is None:
        return ""
    local = localtime(moment)
    return in_two(f"{local:%Y-%m-%d}", f"{local:%H:%M:%S}")


def in_two(date: str, hours: str) -> SafeString:
    """Write a date and hours, each unbroken."""
    return format_html('<span class="facho-time">{}</span> <span class="facho-time">{}</span>', date, hours)


def pretty_json(value: Any) -> SafeString:
    """Lay JSON out for reading."""
    return format_html("<pre>{}</pre>", json.dumps(value, indent=2, ensure_ascii=False, sort_keys=True))


class LongPages(Paginator):  # type: ignore[type-arg]  # generic in its stubs only
    """Pages of a list that may be so long that counting it takes longer than showing it: it ends at MANY rows."""

    @cached_property
    def found(self) -> int:
        """How many rows there are, counted up to MANY and one more."""
        rows: Any = self.object_list
        return int(rows.order_by().values("pk")[: MANY + 1].count())

    @cached_property
    def count(self) -> int:
        """How many rows the pages hold."""
        return min(self.found, MANY)

    def page(self, number: int | str) -> Any:
        """Find the rows of a page by an index alone, and only then load what is shown of them."""
        rows: Any = self.object_list
        page: Any = super().page(number)
        ids = list(page.object_list.values_list("pk", flat=True))
        page.object_list = rows.filter(pk__in=ids)
        return page

    @property
    def is_cut(self) -> bool:
        """Tell whether there are more rows than pages."""
        return self.found > MANY


class LongListAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    """A list of many rows: nothing is counted to its end, neither for pages nor beside filters."""

    list_per_page = 50
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER
    paginator = LongPages


class ReadOnlyAdmin(LongListAdmin):
    """Rows that only the engine writes."""

    # The path from a row to its OLT; empty when there is none.
    olt_path = "olt"

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Load the OLT of each row along, without its secrets."""
        rows = super().get_queryset(request)
        return rows.select_related(self.olt_path).defer(*without_secrets(self.olt_path)) if self.olt_path else rows

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Nobody adds."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Nobody changes."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Nobody deletes: retention does."""
        return False


class OltFilter(admin.SimpleListFilter):
    """Narrows a list to one OLT."""

    title = _("OLT")
    parameter_name = "olt"
    path = "olt_id"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Iterable[tuple[str, str]]:
        """Offer every OLT."""
        return [(str(pk), name) for pk, name in Olt.objects.order_by("name").values_list("id", "name")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Narrow to the chosen one."""
        chosen = self.value()
        return queryset.filter(**{self.path: int(chosen)}) if chosen and chosen.isdecimal() else queryset


class RecentFilter(admin.SimpleListFilter):
    """Narrows a list to what was written in the last hour or day."""

    title = _("period")
    parameter_name = "hours"
    time_field = "created_at"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Iterable[tuple[str, Any]]:
        """Offer both."""
        return [("1", _("last hour")), ("24", _("last 24 hours"))]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Narrow to the chosen one."""
        if self.value() not in ("1", "24"):
            return queryset
        since = timezone.now() - timedelta(hours=int(self.value() or 0))
        return queryset.filter(**{f"{self.time_field}__gte": since})
