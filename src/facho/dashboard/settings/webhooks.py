"""Webhooks by form: where events go, which ones, whether they arrive, and having them sent again."""

from datetime import timedelta
from typing import Any

from django import forms
from django.conf import settings
from django.contrib import messages
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.text import capfirst
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from facho.accounts.audit import Action, changed_words, record
from facho.alerts.channels import ChannelFault, ChannelSecrets, check_reach
from facho.alerts.models import ChannelKind
from facho.dashboard.shared.page import for_admins_of_all_olts, is_part, moment_field, read_id
from facho.hosts.models import OltGroup
from facho.infrastructure.secrets import Secret
from facho.neighbours import webhooks
from facho.neighbours.models import WEBHOOK_KINDS, DeliveryState, Webhook, WebhookDelivery

# The sender looks every two seconds, every ten when there was no webhook, and gives a test a quarter of a minute.
TEST_PATIENCE = timedelta(seconds=60)
SHOWN_DELIVERIES = 10
_PLAIN = {"autocomplete": "off", "spellcheck": "false"}


class WebhookForm(forms.Form):
    """Of a stored webhook, an empty address and an empty key stay as they are."""

    name = forms.CharField(
        label=gettext_lazy("Name"),
        max_length=60,
        widget=forms.TextInput(_PLAIN | {"placeholder": gettext_lazy("for example: billing")}),
    )
    url = forms.CharField(
        label=gettext_lazy("Address"),
        required=False,
        max_length=2_000,
        widget=forms.TextInput(_PLAIN | {"placeholder": "https://billing.example.net/facho"}),
    )
    signing_key = forms.CharField(
        label=gettext_lazy("Signing key"),
        required=False,
        strip=False,
        max_length=500,
        help_text=gettext_lazy("At least 16 characters, shared with your program. It proves who the sender is."),
        widget=forms.PasswordInput({"autocomplete": "new-password", "spellcheck": "false"}),
    )
    kinds = forms.MultipleChoiceField(
        label=gettext_lazy("Events"),
        choices=WEBHOOK_KINDS,
        widget=forms.CheckboxSelectMultiple,
        error_messages={"required": gettext_lazy("Choose at least one kind of event.")},
    )
    olt_group = forms.ModelChoiceField(
        OltGroup.objects.order_by("name"),
        required=False,
        empty_label=gettext_lazy("all OLTs"),
    )

    def __init__(self, data: Any = None, *, webhook: Webhook | None = None) -> None:
        stored = {name: getattr(webhook, name) for name in ("name", "kinds", "olt_group")} if webhook else {}
        super().__init__(data, initial=stored or {"kinds": list(webhooks.ALL_KINDS)}, label_suffix="")
        self.fields["olt_group"].label = capfirst(_("OLT group"))
        self.webhook = webhook

    @property
    def is_address_wrong(self) -> bool:
        return bool(self["url"].errors or self["signing_key"].errors)

    @property
    def given(self) -> ChannelSecrets:
        typed = {name: self.cleaned_data.get(name, "") for name in ("url", "signing_key")}
        return ChannelSecrets(Secret(typed["url"].strip()), Secret(typed["signing_key"]))

    def clean_name(self) -> str:
        name: str = self.cleaned_data["name"]
        if Webhook.objects.filter(name=name).exclude(pk=self.webhook.pk if self.webhook else 0).exists():
            raise forms.ValidationError(_("Another webhook has this name."))
        return name

    def clean(self) -> dict[str, Any]:
        """Check the address as far as the server itself."""
        values: dict[str, Any] = super().clean() or self.cleaned_data
        given = self.given
        for name, text in webhooks.find_faults(webhooks.ALL_KINDS, given, stored=self.webhook).items():
            self.add_error(name, text)
        if given.url and not self.errors:
            try:
                check_reach(ChannelKind.WEBHOOK, given.url.reveal(), settings.FACHO_WEBHOOK_ALLOW)
            except ChannelFault as fault:
                self.add_error("url", str(fault))
        return values

    def save(self) -> Webhook:
        """Write the webhook; the caller records it."""
        webhook = self.webhook or Webhook()
        for name in ("name", "kinds", "olt_group"):
            setattr(webhook, name, self.cleaned_data[name])
        webhooks.save_webhook(webhook, self.given, now=timezone.now())
        return webhook


class ReplayForm(forms.Form):
    """Since when, on the user's clock."""

    since = moment_field(
        gettext_lazy("Since"),
        error_messages={"required": gettext_lazy("Give a time."), "invalid": gettext_lazy("Give a time.")},
    )


@require_safe
@for_admins_of_all_olts
def webhooks_page(request: HttpRequest) -> HttpResponse:
    rows = webhooks.stored_webhooks().select_related("olt_group").order_by("name")
    context = {"place": "webhooks", "rows": rows, "all_kinds": len(webhooks.ALL_KINDS), "now": timezone.now()}
    return render(request, "settings/webhooks.html", context)


@sensitive_post_parameters()
@require_http_methods(["GET", "HEAD", "POST"])
@for_admins_of_all_olts
def webhook_add(request: HttpRequest) -> HttpResponse:
    """Ask for what is needed; a webhook that is saved is tested at once."""
    form = WebhookForm(request.POST if request.method == "POST" else None)
    if not form.is_valid():
        return render(request, "settings/webhook.html", {"place": "webhooks", "form": form})
    with transaction.atomic():
        webhook = form.save()
        record(request.user, webhook, Action.ADDED)
        test = webhooks.write_test(webhook, now=timezone.now())
    return _to_page(webhook, test)


@sensitive_post_parameters()
@require_http_methods(["GET", "HEAD", "POST"])
@for_admins_of_all_olts
def webhook_page(request: HttpRequest, webhook_id: int) -> HttpResponse:
    """Show and change a webhook; a new address is tested at once."""
    webhook = _find(webhook_id)
    before = {name: str(getattr(webhook, name)) for name in webhooks.WEBHOOK_COLUMNS}
    form = WebhookForm(request.POST if request.method == "POST" else None, webhook=webhook)
    if not form.is_valid():
        return _page(request, webhook, form, ReplayForm())
    secrets = {name: "new" for name in ("url", "signing_key") if form.cleaned_data.get(name)}
    with transaction.atomic():
        form.save()
        after = {name: str(getattr(webhook, name)) for name in webhooks.WEBHOOK_COLUMNS} | secrets
        record(request.user, webhook, Action.CHANGED, changed_words(before, after, secrets=list(secrets)))
        test = webhooks.write_test(webhook, now=timezone.now()) if secrets and webhook.enabled else None
    messages.success(request, _("Saved."))
    return _to_page(webhook, test)


def _page(request: HttpRequest, webhook: Webhook, form: WebhookForm, again: ReplayForm) -> HttpResponse:
    number, now = read_id(request.GET.get("test", "")), timezone.now()
    log = WebhookDelivery.objects.filter(webhook=webhook).order_by("-id")
    test = log.filter(is_test=True, pk=number).first() if number else None
    context = {
        "place": "webhooks",
        "webhook": webhook,
        "form": form,
        "again": again,
        "test": test,
        "is_late": test is not None and now - test.created_at > TEST_PATIENCE,
        "now": now,
        "waiting": webhooks.count_waiting(webhook),
        "batch": log.filter(state=DeliveryState.WAITING, is_test=False).first(),
        # The test above shows its own result as it comes.
        "deliveries": log.exclude(pk=test.pk if test else 0)[:SHOWN_DELIVERIES],
    }
    return render(request, "settings/webhook.html", context)


@require_POST
@for_admins_of_all_olts
def webhook_test(request: HttpRequest, webhook_id: int) -> HttpResponse:
    webhook = _find(webhook_id)
    if not webhook.enabled:
        messages.error(request, _("This webhook is disabled: nothing is sent to it."))
        return redirect("settings-webhook", webhook.pk)
    with transaction.atomic():
        record(request.user, webhook, Action.CHANGED, gettext_lazy("Sent a test"))
        test = webhooks.write_test(webhook, now=timezone.now())
    return _test_result(request, test) if is_part(request) else _to_page(webhook, test)


@require_safe
@for_admins_of_all_olts
def webhook_test_result(request: HttpRequest, webhook_id: int, delivery_id: int) -> HttpResponse:
    tests = WebhookDelivery.objects.filter(webhook_id=webhook_id, is_test=True)
    return _test_result(request, get_object_or_404(tests, pk=delivery_id))


def _test_result(request: HttpRequest, test: WebhookDelivery) -> HttpResponse:
    now = timezone.now()
    context = {"test": test, "now": now, "is_late": now - test.created_at > TEST_PATIENCE}
    return render(request, "settings/_webhook_test.html", context)


@require_POST
@for_admins_of_all_olts
def webhook_replay(request: HttpRequest, webhook_id: int) -> HttpResponse:
    webhook, again = _find(webhook_id), ReplayForm(request.POST)
    if not again.is_valid():
        return _page(request, webhook, WebhookForm(webhook=webhook), again)
    since = again.cleaned_data["since"]
    with transaction.atomic():
        record(request.user, webhook, Action.CHANGED, _("Sends again since %(time)s") % {"time": since.isoformat()})
        done = webhooks.replay(webhook.pk, since)
    number = done.events.number + done.outages
    text = ngettext("%(count)s event is sent again.", "%(count)s events are sent again.", number)
    if not done.events.is_exact:
        text = _("More than %(count)s events are sent again.")
    messages.success(request, text % {"count": number})
    return redirect("settings-webhook", webhook.pk)


@require_POST
@for_admins_of_all_olts
def webhook_switch(request: HttpRequest, webhook_id: int) -> HttpResponse:
    """Enable or disable a webhook; a disabled one gets later what it misses."""
    webhook, enabled = _find(webhook_id), request.POST.get("enabled") == "yes"
    with transaction.atomic():
        Webhook.objects.filter(pk=webhook.pk).update(enabled=enabled, updated_at=timezone.now())
        record(request.user, webhook, Action.CHANGED, changed_words({"enabled": webhook.enabled}, {"enabled": enabled}))
    return redirect("settings-webhook", webhook.pk)


@require_http_methods(["GET", "HEAD", "POST"])
@for_admins_of_all_olts
def webhook_delete(request: HttpRequest, webhook_id: int) -> HttpResponse:
    webhook = _find(webhook_id)
    if request.method == "POST":
        with transaction.atomic():
            record(request.user, webhook, Action.DELETED)
            webhook.delete()
        messages.success(request, _("The webhook %(name)s was deleted.") % {"name": webhook.name})
        return redirect("settings-webhooks")
    context = {"place": "webhooks", "webhook": webhook, "waiting": webhooks.count_waiting(webhook)}
    return render(request, "settings/webhook_delete.html", context)


def _find(webhook_id: int) -> Webhook:
    return get_object_or_404(webhooks.stored_webhooks().select_related("olt_group"), pk=webhook_id)


def _to_page(webhook: Webhook, test: WebhookDelivery | None) -> HttpResponse:
    address = reverse("settings-webhook", args=[webhook.pk])
    return redirect(f"{address}?test={test.pk}" if test else address)
