"""Admin pages of channels and of the log of their messages: secrets are entered here and never shown."""

from typing import TYPE_CHECKING, Any

from django import forms
from django.conf import settings
from django.contrib import admin
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.text import capfirst
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from facho.accounts.audit import Action, record
from facho.alerts.channels import ChannelSecrets, find_faults, save_channel, write_test
from facho.alerts.models import AlertChannel, Notice
from facho.hosts.admin_pages import ReadOnlyAdmin
from facho.hosts.olt_form import SecretInput, new_secret
from facho.hosts.secrets import Secret

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
    """Everything that an admin decides about a channel."""

    language = forms.ChoiceField(
        label=capfirst(_("language")), choices=[("", _("the installation's")), *settings.LANGUAGES], required=False
    )
    new_url = SecretInput(_("address"))
    new_signing_key = SecretInput(_("signing key"))

    class Meta:
        model = AlertChannel
        fields = ["name", "kind", "language", "enabled"]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not self.instance.pk:
            self.fields["new_url"].help_text = _address_examples()
            self.fields["new_signing_key"].help_text = AlertChannel._meta.get_field("signing_key").help_text

    def clean(self) -> dict[str, Any]:
        """Judge address and key by the rules of the channel's kind."""
        values = super().clean() or {}
        if "kind" in values:
            stored = self.instance if self.instance.pk else None
            for column, fault in find_faults(values["kind"], self.given(), stored=stored).items():
                self.add_error(new_secret(column), fault)
        return values

    def given(self) -> ChannelSecrets:
        """Return the secrets that were filled in."""
        url, key = (str(self.cleaned_data.get(new_secret(name)) or "") for name in ("url", "signing_key"))
        return ChannelSecrets(Secret(url.strip()), Secret(key))


def _address_examples() -> SafeString:
    """Show an address of each service, and of a webhook; docs/alerts.md tells where their parts come from."""
    lines = format_html_join("", "{}: <code>{}</code><br>", ADDRESS_EXAMPLES)
    return format_html("{}{}", lines, _("It is stored encrypted and never shown again."))


@admin.register(AlertChannel)
class AlertChannelAdmin(admin.ModelAdmin):  # type: ignore[type-arg]  # generic in its stubs only
    """Ways to tell people."""

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
        """Put a test message into the outbox of each channel; its log tells what became of it."""
        now, channels = timezone.now(), list(queryset.filter(enabled=True))
        with transaction.atomic():
            for channel in channels:
                record(request.user, channel, Action.CHANGED, _("Sent a test"))
                write_test(channel, now=now)
        sent = len(channels)
        text = ngettext(
            "%(n)s test is on its way; the messages tell in a moment whether it arrived.",
            "%(n)s tests are on their way; the messages tell in a moment whether they arrived.",
            sent,
        )
        self.message_user(request, text % {"n": sent})


class ChannelFilter(admin.SimpleListFilter):
    """Narrows messages to those of one channel, without loading the channels' secrets."""

    title = _("channel")
    parameter_name = "channel"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Offer every channel by its name."""
        return [(str(pk), name) for pk, name in AlertChannel.objects.values_list("id", "name")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Notice]) -> QuerySet[Notice]:
        """Keep the messages of the chosen channel."""
        chosen = self.value() or ""
        return queryset.filter(channel_id=int(chosen)) if chosen.isascii() and chosen.isdigit() else queryset


@admin.register(Notice)
class NoticeAdmin(ReadOnlyAdmin):
    """The log of messages: what was told to whom, what waits, and what did not arrive."""

    list_display = ["created_at", "channel", "kind", "title", "state", "tries", "next_try_at", "sent_at", "last_error"]
    list_filter = ["state", "kind", ChannelFilter]
    search_fields = ["title"]
    exclude = ["alerts", "payload", "key"]
    olt_path = ""

    def get_queryset(self, request: HttpRequest) -> QuerySet[Notice]:
        """Load the channel of each message along, without its secrets."""
        rows: QuerySet[Notice] = super().get_queryset(request)
        return rows.select_related("channel").defer("channel__url", "channel__signing_key")
