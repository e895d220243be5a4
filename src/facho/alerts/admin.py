"""Admin pages of rules and alerts: people write rules, the engine writes alerts."""

from collections.abc import Iterable
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.db.models import Prefetch, QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.html import format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from facho.accounts.acknowledge import AcknowledgementError, acknowledge
from facho.alerts import channel_admin  # noqa: F401 registers its pages
from facho.alerts.alerts_read_model import shown_alerts
from facho.alerts.channels import stored_channels
from facho.alerts.models import Alert, AlertRule, Kind
from facho.alerts.rule_check import find_faults
from facho.alerts.rule_words import LOOKS_FOR, THRESHOLDS
from facho.alerts.words import sentence_of
from facho.hosts.admin_pages import OltFilter, ReadOnlyAdmin, pretty_json


class AlertRuleForm(forms.ModelForm):  # type: ignore[type-arg]  # generic in its stubs only
    """Judges a rule as the API does."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name in ("channels", "escalation_channels"):
            if name in self.fields:
                self.fields[name].queryset = stored_channels()  # type: ignore[attr-defined]

    def clean(self) -> dict[str, Any]:
        """Say beside each field what cannot be meant."""
        values: dict[str, Any] = super().clean() or self.cleaned_data
        if "kind" in values:
            stored = self.instance if self.instance.pk else None
            for field, text in find_faults(values, stored=stored).items():
                self.add_error(field, text)
        return values


@admin.register(AlertRule)
class AlertRuleAdmin(admin.ModelAdmin):  # type: ignore[type-arg]  # generic in its stubs only
    """What is looked for, when it counts, and whom it is told to."""

    form = AlertRuleForm
    list_display = ["name", "kind", "severity", "enabled", "told_to"]
    list_filter = ["kind", "severity", "enabled"]
    search_fields = ["name"]
    filter_horizontal = ["channels", "escalation_channels"]
    readonly_fields = ["kinds", "thresholds"]
    fieldsets = [
        (None, {"fields": ["name", "kind", "severity", "enabled", "olt_group"]}),
        (_("When it counts"), {"fields": ["threshold", "clear_margin", "hold_minutes", "clear_minutes", "thresholds"]}),
        (_("Whom it is told to"), {"fields": ["channels", "sends_resolved", "quiet_from", "quiet_to"]}),
        (_("If nobody acknowledges it"), {"fields": ["escalate_minutes", "escalation_channels"]}),
        (_("What each kind looks for"), {"classes": ["collapse"], "fields": ["kinds"]}),
    ]

    def get_queryset(self, request: HttpRequest) -> QuerySet[AlertRule]:
        """Load the names of channels along, and none of their secrets."""
        return super().get_queryset(request).prefetch_related(Prefetch("channels", stored_channels()))

    @admin.display(description=_("told to"))
    def told_to(self, rule: AlertRule) -> str:
        """Name the channels."""
        return ", ".join(channel.name for channel in rule.channels.all()) or str(_("nobody; it is only shown"))

    @admin.display(description=_("kinds"))
    def kinds(self, rule: AlertRule) -> SafeString:
        """Explain every kind."""
        return _lines((Kind(kind).label, words) for kind, words in LOOKS_FOR.items())

    @admin.display(description=_("units of thresholds"))
    def thresholds(self, rule: AlertRule) -> SafeString:
        """Explain what a threshold is, where a kind has one."""
        return _lines((Kind(kind).label, words) for kind, words in THRESHOLDS.items())


@admin.register(Alert)
class AlertAdmin(ReadOnlyAdmin):
    """What rules found; the latest first."""

    list_display = ["sentence", "severity", "state", "began_at", "resolved_at", "acknowledged_by"]
    list_filter = ["state", "severity", "rule", OltFilter]
    search_fields = ["olt__name", "subject"]
    ordering = ["-began_at", "-id"]
    actions = ["take_note"]
    fields = [
        "sentence",
        "rule",
        "olt",
        "severity",
        "state",
        "is_flapping",
        "began_at",
        "fired_at",
        "told_at",
        "escalated_at",
        "resolved_at",
        "acknowledged_at",
        "acknowledged_by",
        "acknowledgement",
        "facts_laid_out",
    ]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Alert]:
        """Show what fires or fired."""
        return shown_alerts()

    @admin.display(description=_("what"))
    def sentence(self, alert: Alert) -> str:
        """Say what is wrong."""
        return sentence_of(alert.rule.kind, alert.facts)

    @admin.display(description=_("facts"))
    def facts_laid_out(self, alert: Alert) -> SafeString:
        """Lay out what the sentence is made of."""
        return pretty_json(alert.facts)

    @admin.action(description=_("Acknowledge the chosen alerts"))
    def take_note(self, request: HttpRequest, queryset: QuerySet[Alert]) -> None:
        """Take note of them in the name of whoever asks; what somebody else has is left to them."""
        done = 0
        for alert in queryset:
            try:
                acknowledge(alert, request.user, "", now=timezone.now())
                done += 1
            except AcknowledgementError as error:
                self.message_user(request, f"{self.sentence(alert)}: {error}", messages.WARNING)
        text = ngettext("%(count)s alert acknowledged.", "%(count)s alerts acknowledged.", done) % {"count": done}
        self.message_user(request, text, messages.SUCCESS)


def _lines(pairs: Iterable[tuple[object, object]]) -> SafeString:
    return format_html_join("", "<p><strong>{}</strong>: {}</p>", pairs)
