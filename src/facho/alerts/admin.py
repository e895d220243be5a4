"""Admin pages of rules and alerts: people write rules, the engine writes alerts."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from django import forms
from django.conf import settings
from django.contrib import admin, messages
from django.db import transaction
from django.db.models import Prefetch, QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.text import capfirst
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from facho.accounts.acknowledge import AcknowledgementError, acknowledge
from facho.accounts.audit import Action, record
from facho.alerts.channels import ChannelSecrets, save_channel, stored_channels, write_test
from facho.alerts.channels import find_faults as find_channel_faults
from facho.alerts.conditions import CONDITIONS, sentence_of
from facho.alerts.models import Alert, AlertChannel, AlertRule, Notice
from facho.alerts.store import find_faults, shown_alerts
from facho.hosts.admin import NamedRowFilter, OltFilter
from facho.hosts.olt_form import SecretInput, new_secret
from facho.infrastructure.admin_pages import ReadOnlyAdmin, pretty_json
from facho.infrastructure.secrets import Secret

if TYPE_CHECKING:
    _ChannelModelForm = forms.ModelForm[AlertChannel]
else:
    _ChannelModelForm = forms.ModelForm  # Django's forms take type parameters in their stubs only


ADDRESS_EXAMPLES = (
    (_("e-mail"), "mailtos://USER:PASSWORD@DOMAIN?smtp=mail.example.net&from=facho@example.net&to=noc@example.net"),
    ("Telegram", "tgram://BOT-TOKEN/CHAT-ID"),
    ("ntfy", "ntfys://TOPIC"),
    (_("signed webhook"), "https://HOST/PATH"),
)


class ChannelForm(_ChannelModelForm):
    language = forms.ChoiceField(
        label=capfirst(_("language")), choices=[("", _("the installation's")), *settings.LANGUAGES], required=False
    )
    new_url = SecretInput(_("address"), help_text=_("Never shown. Leave empty to keep the stored one."))
    new_signing_key = SecretInput(
        _("signing key"),
        help_text=_("Never shown. Leave empty to keep the stored one, unless the address names another server."),
    )

    class Meta:
        model = AlertChannel
        fields = ["name", "kind", "language", "enabled"]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not self.instance.pk:
            # Where the parts of an address come from is in docs/alerts.md.
            lines = format_html_join("", "{}: <code>{}</code><br>", ADDRESS_EXAMPLES)
            words = _("It is stored encrypted and never shown again.")
            self.fields["new_url"].help_text = format_html("{}{}", lines, words)
            self.fields["new_signing_key"].help_text = AlertChannel._meta.get_field("signing_key").help_text

    def clean(self) -> dict[str, Any]:
        """Judge address and key by the rules of the channel's kind."""
        values = super().clean() or {}
        if "kind" in values:
            stored = self.instance if self.instance.pk else None
            for column, fault in find_channel_faults(values["kind"], self.given(), stored=stored).items():
                self.add_error(new_secret(column), fault)
        return values

    def given(self) -> ChannelSecrets:
        url, key = (str(self.cleaned_data.get(new_secret(name)) or "") for name in ("url", "signing_key"))
        return ChannelSecrets(Secret(url.strip()), Secret(key))


@admin.register(AlertChannel)
class AlertChannelAdmin(admin.ModelAdmin):  # type: ignore[type-arg]  # generic in its stubs only
    form = ChannelForm
    list_display = ["name", "kind", "shown_as", "enabled"]
    list_filter = ["kind", "enabled"]
    search_fields = ["name"]
    readonly_fields = ["shown_as"]
    actions = ["send_test"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[AlertChannel]:
        """Load no secret."""
        return super().get_queryset(request).defer("url", "signing_key")

    def save_model(self, request: HttpRequest, obj: AlertChannel, form: Any, change: bool) -> None:
        """Write what was decided, and the secrets that were filled in."""
        save_channel(obj, form.given())

    @admin.action(description=_("Send test"))
    def send_test(self, request: HttpRequest, queryset: QuerySet[AlertChannel]) -> None:
        """Put a test message into the outbox of each channel; its log shows the outcome."""
        now, channels = timezone.now(), list(queryset.filter(enabled=True))
        with transaction.atomic():
            for channel in channels:
                record(request.user, channel, Action.CHANGED, _("Sent a test"))
                write_test(channel, now=now)
        sent = len(channels)
        text = ngettext(
            "%(n)s test message is being sent; the messages show in a moment whether it arrived.",
            "%(n)s test messages are being sent; the messages show in a moment whether they arrived.",
            sent,
        )
        self.message_user(request, text % {"n": sent})


class ChannelFilter(NamedRowFilter):
    title = _("channel")
    parameter_name = "channel"
    path = "channel_id"
    model = AlertChannel


@admin.register(Notice)
class NoticeAdmin(ReadOnlyAdmin):
    """The log of messages: sent, waiting and failed, by channel."""

    list_display = ["created_at", "channel", "kind", "title", "state", "tries", "next_try_at", "sent_at", "last_error"]
    list_filter = ["state", "kind", ChannelFilter]
    search_fields = ["title"]
    exclude = ["alerts", "payload", "key"]
    olt_path = ""

    def get_queryset(self, request: HttpRequest) -> QuerySet[Notice]:
        """Load the channel of each message, without its secrets."""
        rows: QuerySet[Notice] = super().get_queryset(request)
        return rows.select_related("channel").defer("channel__url", "channel__signing_key")


class AlertRuleForm(forms.ModelForm):  # type: ignore[type-arg]  # generic in its stubs only
    """Checks a rule as the API does."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name in ("channels", "escalation_channels"):
            if name in self.fields:
                self.fields[name].queryset = stored_channels()  # type: ignore[attr-defined]

    def clean(self) -> dict[str, Any]:
        values: dict[str, Any] = super().clean() or self.cleaned_data
        if "kind" in values:
            stored = self.instance if self.instance.pk else None
            for field, text in find_faults(values, stored=stored).items():
                self.add_error(field, text)
        return values


@admin.register(AlertRule)
class AlertRuleAdmin(admin.ModelAdmin):  # type: ignore[type-arg]  # generic in its stubs only
    form = AlertRuleForm
    list_display = ["name", "kind", "severity", "enabled", "notifies"]
    list_filter = ["kind", "severity", "enabled"]
    search_fields = ["name"]
    filter_horizontal = ["channels", "escalation_channels"]
    readonly_fields = ["kinds", "thresholds"]
    fieldsets = [
        (None, {"fields": ["name", "kind", "severity", "enabled", "olt_group"]}),
        (_("When it counts"), {"fields": ["threshold", "clear_margin", "hold_minutes", "clear_minutes", "thresholds"]}),
        (_("Whom it notifies"), {"fields": ["channels", "sends_resolved", "quiet_from", "quiet_to"]}),
        (_("If it is not acknowledged"), {"fields": ["escalate_minutes", "escalation_channels"]}),
        (_("What each kind looks for"), {"classes": ["collapse"], "fields": ["kinds"]}),
    ]

    def get_queryset(self, request: HttpRequest) -> QuerySet[AlertRule]:
        """Load the names of channels, without their secrets."""
        return super().get_queryset(request).prefetch_related(Prefetch("channels", stored_channels()))

    @admin.display(description=_("notifies"))
    def notifies(self, rule: AlertRule) -> str:
        return ", ".join(channel.name for channel in rule.channels.all()) or str(_("no one; it is only shown"))

    @admin.display(description=_("kinds"))
    def kinds(self, rule: AlertRule) -> SafeString:
        return _lines((each.label, each.looks_for) for each in CONDITIONS.values())

    @admin.display(description=_("units of thresholds"))
    def thresholds(self, rule: AlertRule) -> SafeString:
        return _lines((each.label, each.threshold.unit) for each in CONDITIONS.values() if each.threshold)


@admin.register(Alert)
class AlertAdmin(ReadOnlyAdmin):
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
        return shown_alerts()

    @admin.display(description=_("what"))
    def sentence(self, alert: Alert) -> str:
        return sentence_of(alert.rule.kind, alert.facts)

    @admin.display(description=_("facts"))
    def facts_laid_out(self, alert: Alert) -> SafeString:
        return pretty_json(alert.facts)

    @admin.action(description=_("Acknowledge the chosen alerts"))
    def take_note(self, request: HttpRequest, queryset: QuerySet[Alert]) -> None:
        """Acknowledge them for this user; alerts acknowledged by someone else stay theirs."""
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
