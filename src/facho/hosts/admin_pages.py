"""What the admin pages of all rooms share: rows that people only look at, and OLTs without their secrets."""

import json
from collections.abc import Iterable
from typing import Any

from django.contrib import admin
from django.db.models import Model, QuerySet
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from facho.hosts.models import Olt
from facho.hosts.olt_entry import SECRET_COLUMNS


def without_secrets(path: str = "olt") -> list[str]:
    """Name the columns of a related OLT that a list must not load: each would be decrypted, or fail to be."""
    return [f"{path}__{name}" for name in SECRET_COLUMNS]


def pretty_json(value: Any) -> SafeString:
    """Lay JSON out for reading."""
    return format_html("<pre>{}</pre>", json.dumps(value, indent=2, ensure_ascii=False, sort_keys=True))


class ReadOnlyAdmin(admin.ModelAdmin):  # type: ignore[type-arg]  # generic in its stubs only
    """Rows that only the engine writes."""

    list_per_page = 50
    show_full_result_count = False
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
