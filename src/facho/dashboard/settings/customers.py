"""The import of customers from a file."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_http_methods

from facho.dashboard.shared.import_page import ImportPage
from facho.dashboard.shared.page import for_users, must_operate
from facho.onus.customers import COORDINATES, FIELDS, Imported, plan_file, read_file, save_customers


def import_customers(content: bytes, **wishes: Any) -> Imported:
    return save_customers(read_file(content), **wishes)


IMPORT = ImportPage(
    pending="customer_import",
    template="settings/customers.html",
    address="settings-customers",
    address_after="settings-customers",
    file_label=_("CSV file or Excel workbook"),
    accepts=".csv,.txt,.tsv,.xlsx",
    example="serial,label,phone\nHWTC12345678,Ana Ríos,555 1234",
    too_large=_("The file is too large: import it in parts, or with `facho onu import`."),
    changed_meanwhile=_("Nothing was imported: some customers changed meanwhile. Check the changes below again."),
    saved=_("%(written)s customers written, %(unchanged)s unchanged, %(left_out)s left out"),
    plan=plan_file,
    save=import_customers,
    context={
        "here": "settings",
        "place": "customers",
        "columns": [name for name in FIELDS if name not in COORDINATES],
    },
)


@require_http_methods(["GET", "HEAD", "POST"])
@for_users
def customers_page(request: HttpRequest) -> HttpResponse:
    """Import customers from a file; for operators, within their OLTs."""
    must_operate(request)
    return IMPORT.answer(request)
