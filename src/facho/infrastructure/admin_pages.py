"""What the admin pages of all rooms share: long lists, rows that people only look at, and no secrets."""

import json
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.contrib.contenttypes.models import ContentType
from django.core.paginator import Paginator
from django.db.models import Model, QuerySet
from django.db.models.constants import LOOKUP_SEP
from django.http import HttpRequest
from django.utils import timezone, translation
from django.utils.functional import Promise, cached_property
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.timezone import localtime
from django.utils.translation import gettext_lazy as _

from facho.infrastructure.secrets import SecretField

# Rows that a list pages through; to see more, narrow it.
MANY = 10_000
BATCH = 500


def without_secrets(model: type[Model], path: str = "olt") -> list[str]:
    """Name the columns of a related row that a list must not load: each would be decrypted, or fail to be."""
    related: Any = model
    for step in path.split(LOOKUP_SEP):
        related = related._meta.get_field(step).related_model
    return [f"{path}__{field.name}" for field in related._meta.concrete_fields if isinstance(field, SecretField)]


def write_down(request: HttpRequest, rows: Iterable[Model], action: int, message: str | Promise) -> None:
    """Leave what was done to rows in the admin's log; in the installation's language, since readers differ."""
    with translation.override(settings.LANGUAGE_CODE):
        LogEntry.objects.log_actions(request.user.pk or 0, list(rows), action, change_message=str(message))


def write_down_each(user_id: int, entries: Iterable[tuple[Model, int, str]]) -> None:
    """Leave an entry of its own for each row that was changed, in few statements; the words hold no secret."""
    types = ContentType.objects.get_for_model
    rows = (
        LogEntry(
            user_id=user_id,
            content_type_id=types(row, for_concrete_model=False).pk,
            object_id=str(row.pk),
            object_repr=str(row)[:200],
            action_flag=action,
            change_message=words,
        )
        for row, action, words in entries
    )
    LogEntry.objects.bulk_create(rows, batch_size=BATCH)


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
    return format_html('<span class="facho-time">{}</span> <span class="facho-time">{}</span>', date, hours)


def pretty_json(value: Any) -> SafeString:
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
        """Return whether there are more rows than pages."""
        return self.found > MANY


class LongListAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    """A list of many rows: no full counts, neither for pages nor for filters."""

    list_per_page = 50
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER
    paginator = LongPages


class ReadOnlyAdmin(LongListAdmin):
    # The path from a row to its OLT; empty when there is none.
    olt_path = "olt"

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Load the OLT of each row along, without its secrets."""
        rows = super().get_queryset(request)
        return (
            rows.select_related(self.olt_path).defer(*without_secrets(self.model, self.olt_path))
            if self.olt_path
            else rows
        )

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Nobody deletes: retention does."""
        return False


class RecentFilter(admin.SimpleListFilter):
    """Narrows a list to what was written in the last hour or day."""

    title = _("period")
    parameter_name = "hours"
    time_field = "created_at"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Iterable[tuple[str, Any]]:
        return [("1", _("last hour")), ("24", _("last 24 hours"))]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        if self.value() not in ("1", "24"):
            return queryset
        since = timezone.now() - timedelta(hours=int(self.value() or 0))
        return queryset.filter(**{f"{self.time_field}__gte": since})
