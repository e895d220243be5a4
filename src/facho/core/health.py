"""Answers of the process to whoever supervises it: alive, and ready to serve pages."""

from django.db import DatabaseError
from django.http import HttpRequest, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from facho.core.database_version import named, read_database_version


@never_cache
@require_safe
def livez(request: HttpRequest) -> JsonResponse:
    """Say that this process answers; nothing else is looked at."""
    return JsonResponse({"status": "alive"})


@never_cache
@require_safe
def readyz(request: HttpRequest) -> JsonResponse:
    """Say whether the database can be reached and fits this version; the engine may be stopped."""
    reason = _reason_not_ready()
    if reason:
        return JsonResponse({"status": "not ready", "reason": reason}, status=503)
    return JsonResponse({"status": "ready"})


def _reason_not_ready() -> str:
    try:
        version = read_database_version()
    except DatabaseError:
        # The message of the driver may hold the address and the user; the log of the server has it.
        return "the database does not answer"
    if version.missing:
        return f"migration {named(version.missing)} is not applied"
    if version.unknown:
        return f"the database is from a newer version ({named(version.unknown)})"
    return ""
