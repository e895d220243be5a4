"""Writes ONUs as a file while they are read, so that a million take no more memory than a thousand."""

import csv
import io
import json
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from typing import Any

from asgiref.sync import sync_to_async
from django.http import StreamingHttpResponse
from rest_framework.renderers import BaseRenderer, JSONRenderer

from facho.api.onu_serializers import CustomerSerializer, OnuSerializer
from facho.hosts.csv_rows import guard
from facho.onus.customers import FIELDS
from facho.onus.models import Onu
from facho.onus.search import FoundOnus

BATCH = 1_000
CUSTOMER = "customer"
CSV_COLUMNS = (*(name for name in OnuSerializer.Meta.fields if name != CUSTOMER), *FIELDS)


class CsvRenderer(BaseRenderer):
    """Lets a client ask for CSV, by its header or by `format`; errors are told in JSON all the same."""

    media_type = "text/csv"
    format = "csv"

    def render(self, data: Any, media_type: str | None = None, context: Any = None) -> bytes:
        """Write an error: files are streamed and never come here."""
        return bytes(JSONRenderer().render(data, media_type, context))


def stream_onus(found: FoundOnus, kind: str) -> StreamingHttpResponse:
    """Answer with a file of all that was found."""
    batches = found.in_batches(BATCH)
    parts, content_type = (_as_csv(batches), "text/csv") if kind == "csv" else (_as_json(batches), "application/json")
    return StreamingHttpResponse(
        _in_a_thread(parts),
        content_type=f"{content_type}; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="onus.{kind}"'},
    )


async def _in_a_thread(parts: Iterator[str]) -> AsyncIterator[str]:
    # Django would read a plain iterator to its end before it sends the first byte.
    take = sync_to_async(lambda: next(parts, None))
    while (part := await take()) is not None:
        yield part


def _as_json(batches: Iterable[Sequence[Onu]]) -> Iterator[str]:
    opening = "["
    for batch in batches:
        yield opening + ",\n".join(json.dumps(row, ensure_ascii=False) for row in _rows(batch))
        opening = ",\n"
    yield "]\n" if opening != "[" else "[]\n"


def _as_csv(batches: Iterable[Sequence[Onu]]) -> Iterator[str]:
    yield _csv_lines([CSV_COLUMNS])
    for batch in batches:
        yield _csv_lines([_cell(row[name]) for name in CSV_COLUMNS] for row in map(_flat, _rows(batch)))


def _rows(batch: Sequence[Onu]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = OnuSerializer(batch, many=True).data  # type: ignore[assignment]
    return rows


def _flat(row: dict[str, Any]) -> dict[str, Any]:
    """Put the customer's texts beside the rest, under the names by which they are imported."""
    return {**row, **(row[CUSTOMER] or dict.fromkeys(CustomerSerializer.Meta.fields, ""))}


def _cell(value: Any) -> str:
    if isinstance(value, str):
        return guard(value)
    return "" if value is None else json.dumps(value)


def _csv_lines(rows: Iterable[Sequence[str]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()
