"""Admin page of API tokens: seen and revoked here, made on the command line, since their text is shown once."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest

from facho.api.models import ApiToken
from facho.hosts.admin_pages import ReadOnlyAdmin


@admin.register(ApiToken)
class ApiTokenAdmin(ReadOnlyAdmin):
    """Tokens by user."""

    list_display = ["user", "role", "created_at", "expires_at", "last_used_at"]
    list_filter = ["role"]
    list_select_related = ["user"]
    search_fields = ["user__username"]
    olt_path = ""

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Let a token be revoked by whoever may."""
        return super(ReadOnlyAdmin, self).has_delete_permission(request, obj)
