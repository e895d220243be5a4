"""The admin site: an index by activity, daily ones first, and the handling of concurrent edits."""

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, TypeVar, cast

from django.contrib import messages
from django.contrib.admin import AdminSite
from django.db import IntegrityError
from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.utils.translation import gettext_lazy as _

from facho.accounts.roles import Role, role_of

View = TypeVar("View", bound=Callable[..., HttpResponseBase])

# A section names models, or all models of an app that were not named before.
SECTIONS: Sequence[tuple[Any, Sequence[str]]] = (
    (
        _("Every day"),
        (
            "hosts.olt",
            "hosts.pause",
            "snmp_jobs.workflownode",
            "onus.onu",
            "hosts.waitingonu",
            "onus.outage",
            "executions.execution",
        ),
    ),
    (_("What is polled"), ("snmp_jobs.snmpjob", "hosts.oltgroup", "snmp_jobs", "hosts.brand", "hosts.oltmodel")),
    (_("Alerts"), ("alerts.alert", "alerts")),
    (
        _("Quotas and plans"),
        (
            "execution_coordinator.quotatracker",
            "execution_coordinator.quotaviolation",
            "execution_coordinator.executionplan",
            "execution_coordinator",
            "zabbix_pollers",
        ),
    ),
    (_("What was read"), ("onus.onuevent", "onus", "hosts")),
    (_("People and access"), ("auth.user", "accounts", "api", "auth", "admin")),
)


class FachoAdminSite(AdminSite):
    site_header = _("Facho administration")
    site_title = "Facho"
    index_title = _("What Facho knows and does")

    def has_permission(self, request: HttpRequest) -> bool:
        """Let administrators in: the mark of staff alone, which a script may have left, opens nothing."""
        return super().has_permission(request) and role_of(request.user) is Role.ADMIN

    def get_app_list(self, request: HttpRequest, app_label: str | None = None) -> list[Any]:
        apps: list[Any] = super().get_app_list(request, app_label)
        return apps if app_label else arrange(apps)

    def admin_view(self, view: View, cacheable: bool = False) -> View:
        """Answer in words when two people saved at once."""
        return super().admin_view(_explaining_collisions(view), cacheable)


def _explaining_collisions(view: View) -> View:
    """Show the page as it is now when somebody else was faster than the checks of a form."""

    @wraps(view)
    def answer(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        try:
            return view(request, *args, **kwargs)
        except IntegrityError:
            messages.error(request, _("Nothing was saved: somebody else changed the same thing at the same time."))
            return HttpResponseRedirect(request.get_full_path())

    return cast("View", answer)


def arrange(apps: Sequence[Any]) -> list[Any]:
    """Put the models of all apps into the sections; an app that none names comes behind them."""
    left = {each["model"]._meta.label_lower: each for app in apps for each in app["models"]}
    sections = []
    for number, (title, names) in enumerate(SECTIONS):
        taken = [label for name in names for label in list(left) if label == name or label.startswith(f"{name}.")]
        models = [left.pop(label) for label in dict.fromkeys(taken)]
        if models:
            sections.append({"name": title, "app_label": f"section-{number}", "app_url": "", "models": models})
    rest = [{**app, "models": [each for each in app["models"] if each in left.values()]} for app in apps]
    return [*sections, *(app for app in rest if app["models"])]
