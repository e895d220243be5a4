"""Admin page of API tokens: seen and revoked here, made by their owners or on the command line, shown once."""

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from facho.api.models import ApiToken
from facho.infrastructure.admin_pages import ReadOnlyAdmin


@admin.register(ApiToken)
class ApiTokenAdmin(ReadOnlyAdmin):
    list_display = ["user", "name", "role", "groups", "created_at", "expires_at", "last_used_at"]
    list_filter = ["role"]
    list_select_related = ["user"]
    search_fields = ["user__username", "name"]
    fields = ["user", "name", "role", "groups", "created_at", "expires_at", "last_used_at"]
    olt_path = ""

    @admin.display(description=_("OLT groups"))
    def groups(self, token: ApiToken) -> str:
        return ", ".join(group.name for group in token.olt_groups.all()) or "—"

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return super().get_queryset(request).prefetch_related("olt_groups")

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Allow revoking a token to everyone with the permission."""
        return super(ReadOnlyAdmin, self).has_delete_permission(request, obj)
