"""Answers a request that comes again under the same key with its first answer, and does nothing a second time.

A program that lost the answer to a request cannot know whether it was heard. With the header `Idempotency-Key` it may
simply ask again.
"""

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from django.utils import timezone
from django.utils.translation import gettext as _
from drf_spectacular.utils import OpenApiParameter
from rest_framework.exceptions import APIException, ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from facho.api.models import KeptAnswer
from facho.api.problems import Conflict

if TYPE_CHECKING:
    from rest_framework.views import APIView

    _View = APIView
else:
    _View = object  # joined to a view, which imports this through the settings

HEADER = "Idempotency-Key"
REPLAYED = "Idempotent-Replayed"
MAX_KEY = 100
# Who served it and left no answer within this time was killed; what is asked for may be asked for again.
SERVED_WITHIN = timedelta(minutes=1)

KEY_PARAMETER = OpenApiParameter(
    HEADER,
    location=OpenApiParameter.HEADER,
    description="Any text of your choice: a second request with the same key gets the first one's answer, for a day.",
)


class Idempotent(_View):
    """Adds the key to the POST of a view."""

    def post(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Serve a request whose key is new, or repeat the answer to one whose key is known."""
        key = _key(request)
        if not key:
            return self._serve(request, *args, **kwargs)
        now = timezone.now()
        row, is_new = KeptAnswer.objects.get_or_create(
            user_id=request.user.pk or 0, key=key, defaults={"path": request.path, "created_at": now}
        )
        if not is_new and not _take_over(row, request.path, now):
            return _repeat(row, request.path)
        return self._serve_and_keep(row, request, *args, **kwargs)

    def _serve(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        answer: Response = super().post(request, *args, **kwargs)  # type: ignore[misc]  # the view's own
        return answer

    def _serve_and_keep(self, row: KeptAnswer, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Keep the answer; a request that was refused has done nothing, and may come again under its key."""
        try:
            answer = self._serve(request, *args, **kwargs)
        except APIException:
            row.delete()
            raise
        row.status, row.body = answer.status_code, answer.data
        row.save(update_fields=["status", "body"])
        return answer


def _key(request: Request) -> str:
    key: str = request.headers.get(HEADER, "")
    if len(key) > MAX_KEY or not key.isprintable():
        raise ValidationError({HEADER: [_("A key has at most %(n)s printable characters.") % {"n": MAX_KEY}]})
    return key


def _take_over(row: KeptAnswer, path: str, now: datetime) -> bool:
    """Take over what nobody serves any more; of two that try at once one does."""
    if row.path != path or row.status is not None or now - SERVED_WITHIN < row.created_at <= now:
        return False
    as_read = KeptAnswer.objects.filter(pk=row.pk, status=None, created_at=row.created_at)
    return bool(as_read.update(created_at=now))


def _repeat(row: KeptAnswer, path: str) -> Response:
    if row.path != path:
        raise Conflict(_("This key was used for another request."))
    if row.status is None:
        raise Conflict(_("The first request with this key is still being served."))
    return Response(row.body, status=row.status, headers={REPLAYED: "true"})
