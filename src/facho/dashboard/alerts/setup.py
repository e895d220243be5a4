"""Setting alerts up: channels by form with a live test, and all rules as one matrix that is edited in place."""

import re
from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django import forms
from django.conf import settings
from django.contrib import messages
from django.db import transaction
from django.db.models import Count, Exists, F, OuterRef, Prefetch, Q, Subquery
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.dates import WEEKDAYS
from django.utils.text import capfirst
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from facho.accounts.audit import Action, changed_words, record
from facho.alerts import channels as channel_store
from facho.alerts.conditions import CONDITIONS
from facho.alerts.links import load_public_address, read_public_address, save_public_address
from facho.alerts.models import (
    ALL_DAYS,
    AlertChannel,
    AlertRule,
    AlertState,
    Digests,
    Notice,
    NoticeKind,
    NoticeState,
)
from facho.alerts.store import find_faults, terms_of
from facho.dashboard.shared.page import for_admins_of_all_olts, is_part, read_id
from facho.hosts.models import OltGroup
from facho.infrastructure.secrets import Secret
from facho.snmp_jobs.application import ready_name

if TYPE_CHECKING:
    _RuleModelForm = forms.ModelForm[AlertRule]
else:
    _RuleModelForm = forms.ModelForm  # Django's forms take type parameters in their stubs only

View = Callable[..., HttpResponse]
# A week: longer patience is a rule that is switched off.
MAX_MINUTES = 10_080
# Delivery looks every two seconds and gives a test half a minute.
TEST_PATIENCE = timedelta(seconds=60)
_TIME = forms.TimeInput(attrs={"type": "time"}, format="%H:%M")
_CHANNEL_COLUMNS = (
    "name",
    "language",
    "enabled",
    "digest",
    "sends_reports",
    "on_call_from",
    "on_call_to",
    "on_call_days",
)


class ServiceForm(forms.Form):
    """Name, the inputs of the service, and when it sends. Of a stored channel, an empty address stays as it is."""

    name = forms.CharField(
        label=gettext_lazy("Name"),
        max_length=60,
        widget=forms.TextInput(attrs={"placeholder": gettext_lazy("for example: night shift"), "autocomplete": "off"}),
    )
    digest = forms.ChoiceField(label=gettext_lazy("Messages are sent"), choices=Digests.choices, required=False)
    sends_reports = forms.BooleanField(
        label=gettext_lazy("Monthly report"),
        help_text=gettext_lazy(
            "The report of the last month, in the language of the channel; e-mail carries it as PDF."
        ),
        required=False,
    )
    on_call_from = forms.TimeField(label=gettext_lazy("On call from"), required=False, widget=_TIME)
    on_call_to = forms.TimeField(label=gettext_lazy("to"), required=False, widget=_TIME)
    on_call_days = forms.MultipleChoiceField(
        label=gettext_lazy("On these days"),
        widget=forms.CheckboxSelectMultiple,
        choices=[(str(day + 1), name) for day, name in WEEKDAYS.items()],
        initial=list(ALL_DAYS),
        error_messages={"required": gettext_lazy("Choose at least one day.")},
    )
    language = forms.ChoiceField(
        label=gettext_lazy("Language of the messages"),
        choices=[("", gettext_lazy("the installation's")), *settings.LANGUAGES],
        required=False,
    )

    def __init__(
        self, service: channel_store.Service, data: Any = None, *, channel: AlertChannel | None = None
    ) -> None:
        stored = {name: getattr(channel, name) for name in _CHANNEL_COLUMNS} if channel else {}
        initial = stored | ({"on_call_days": list(stored["on_call_days"])} if stored else {})
        super().__init__(data, initial=initial, label_suffix="")
        self.service, self.channel = service, channel
        for each in service.inputs:
            self.fields[each.name] = input_field(each, is_new=channel is None)
        self.fields["on_call_from"].help_text = _("In the time zone %(zone)s. Empty: all hours.") % {
            "zone": settings.TIME_ZONE
        }
        self.url, self.key = "", ""

    @property
    def address_fields(self) -> list[forms.BoundField]:
        return [self[each.name] for each in self.service.inputs]

    @property
    def is_timing_open(self) -> bool:
        """Whether something there is wrong, or is not as usual."""
        is_wrong = any(self[name].errors for name in ("on_call_from", "on_call_to", "on_call_days"))
        channel = self.channel
        return is_wrong or (channel is not None and terms_of(channel).holds)

    @property
    def is_address_wrong(self) -> bool:
        return any(field.errors for field in self.address_fields)

    def clean_name(self) -> str:
        name: str = self.cleaned_data["name"]
        if AlertChannel.objects.filter(name=name).exclude(pk=self.channel.pk if self.channel else 0).exists():
            raise forms.ValidationError(_("Another channel has this name."))
        return name

    def clean(self) -> dict[str, Any]:
        """Check the hours, then the address as far as the server itself."""
        values: dict[str, Any] = super().clean() or self.cleaned_data
        for name, text in channel_store.find_hour_faults(values.get("on_call_from"), values.get("on_call_to")).items():
            if name in values:
                self.add_error(name, text)
        typed = {each.name: str(values.get(each.name) or "").strip() for each in self.service.inputs}
        is_given = any(typed[each.name] for each in self.service.inputs if not each.usual)
        if self.channel is None or is_given:
            self._check_address(typed)
        return values

    def _check_address(self, typed: dict[str, str]) -> None:
        for each in self.service.inputs:
            self._check_input(each, typed[each.name])
        if self.is_address_wrong:
            return
        self.url, self.key = self.service.build(typed), typed.get("signing_key", "")
        faults = channel_store.find_faults(self.service.kind, self.given, stored=self.channel)
        for name, text in faults.items():
            self.add_error("signing_key" if name == "signing_key" else self.service.main, text)
        if not self.errors:
            try:
                channel_store.check_reach(self.service.kind, self.url, settings.FACHO_WEBHOOK_ALLOW)
            except channel_store.ChannelFault as fault:
                self.add_error(self.service.main, str(fault))

    def _check_input(self, each: channel_store.ServiceInput, text: str) -> None:
        if each.name in self.errors or (not text and not each.is_required):
            return
        # The key of a webhook stays while its server does.
        if not text and each.name == "signing_key" and self.channel is not None:
            return
        if not text:
            self.add_error(each.name, _("This is required."))
        elif not re.fullmatch(each.pattern, text):
            words = _("Use this format: %(example)s") if each.example else _("This is too short.")
            self.add_error(each.name, words % {"example": each.example})

    @property
    def given(self) -> channel_store.ChannelSecrets:
        return channel_store.ChannelSecrets(Secret(self.url), Secret(self.key))

    def save(self) -> AlertChannel:
        """Write the channel; the caller records it."""
        channel = self.channel or AlertChannel(kind=self.service.kind)
        for name in ("name", "language", "digest", "sends_reports", "on_call_from", "on_call_to"):
            setattr(channel, name, self.cleaned_data[name])
        channel.on_call_days = "".join(sorted(self.cleaned_data["on_call_days"]))
        channel_store.save_channel(channel, self.given)
        return channel


def input_field(each: channel_store.ServiceInput, *, is_new: bool) -> forms.Field:
    usual = each.usual if is_new else ""
    if each.choices:
        return forms.ChoiceField(label=str(each.label), choices=each.choices, initial=each.usual, required=False)
    attributes: dict[str, Any] = {"placeholder": each.example, "autocomplete": "off", "spellcheck": "false"}
    # What a secret looks like must be readable, but no browser may store it.
    widget = forms.PasswordInput(attrs=attributes | {"autocomplete": "new-password"}) if each.is_secret else None
    return forms.CharField(
        label=str(each.label),
        required=False,
        max_length=2_000,
        initial=usual,
        strip=not each.is_secret,
        help_text=str(each.help),
        widget=widget or forms.TextInput(attrs=attributes),
    )


_NOTICE_LOOKS = {NoticeState.SENT.value: "success", NoticeState.FAILED.value: "failed"}


@require_safe
@for_admins_of_all_olts
def channels_page(request: HttpRequest) -> HttpResponse:
    return _channels(request)


def _channels(request: HttpRequest, **context: Any) -> HttpResponse:
    last = Notice.objects.filter(channel_id=OuterRef("pk")).order_by("-id")
    rules = Prefetch("rules", AlertRule.objects.only("name").order_by("name"))
    channels = channel_store.stored_channels().annotate(
        last_state=Subquery(last.values("state")[:1]), last_error=Subquery(last.values("last_error")[:1])
    )
    rows = [
        {
            "channel": each,
            "service": channel_store.service_of(each),
            "rules": [rule.name for rule in each.rules.all()],
            "state": each.last_state,
            "words": NoticeState(each.last_state).label if each.last_state else "",
            "look": _NOTICE_LOOKS.get(each.last_state, "waiting"),
            "error": each.last_error,
        }
        for each in channels.prefetch_related(rules).order_by("name")
    ]
    address = load_public_address()
    shown = {
        "place": "channels",
        "rows": rows,
        "services": channel_store.SERVICES.values(),
        # The menu of the settings has an `address` of its own.
        "public_address": address,
        "typed_address": address or f"{request.scheme}://{request.get_host()}",
        "is_from_environment": bool(settings.FACHO_PUBLIC_URL),
        **context,
    }
    return render(request, "alerts/channels.html", shown)


@require_POST
@for_admins_of_all_olts
def public_address_save(request: HttpRequest) -> HttpResponse:
    """Store where people reach these pages, for links in messages."""
    typed = request.POST.get("url", "")
    try:
        url = read_public_address(typed)
    except ValueError:
        fault = _("Enter https://HOST, as in the address bar of your browser, without a path.")
        return _channels(request, typed_address=typed, address_fault=fault)
    before = load_public_address()
    with transaction.atomic():
        record(request.user, save_public_address(url), Action.CHANGED, changed_words({"url": before}, {"url": url}))
    messages.success(request, _("Messages lead to %(address)s from now on.") % {"address": url})
    return redirect("settings-channels")


@sensitive_post_parameters()
@require_http_methods(["GET", "HEAD", "POST"])
@for_admins_of_all_olts
def channel_add(request: HttpRequest, code: str) -> HttpResponse:
    """Ask for what the service needs; a channel that is saved is tested at once."""
    service = channel_store.SERVICES.get(code)
    if service is None:
        return redirect("settings-channels")
    form = ServiceForm(service, request.POST if request.method == "POST" else None)
    if not form.is_valid():
        return render(request, "alerts/channel.html", {"place": "channels", "form": form, "service": service})
    with transaction.atomic():
        channel = form.save()
        record(request.user, channel, Action.ADDED)
        test = channel_store.write_test(channel, now=timezone.now())
    return redirect(f"{reverse('settings-channel', args=[channel.pk])}?test={test.pk}")


@sensitive_post_parameters()
@require_http_methods(["GET", "HEAD", "POST"])
@for_admins_of_all_olts
def channel_page(request: HttpRequest, channel_id: int) -> HttpResponse:
    """Show and change a channel; a new address is tested at once."""
    channel = _find(channel_id)
    before = {name: getattr(channel, name) for name in _CHANNEL_COLUMNS}
    service = channel_store.service_of(channel)
    form = ServiceForm(service, request.POST if request.method == "POST" else None, channel=channel)
    if not form.is_valid():
        return _channel(request, channel, form)
    with transaction.atomic():
        form.save()
        after = {name: getattr(channel, name) for name in _CHANNEL_COLUMNS} | ({"url": "new"} if form.url else {})
        record(request.user, channel, Action.CHANGED, changed_words(before, after, secrets=["url"]))
        test = channel_store.write_test(channel, now=timezone.now()) if form.url and channel.enabled else None
    messages.success(request, _("Saved."))
    address = reverse("settings-channel", args=[channel.pk])
    return redirect(f"{address}?test={test.pk}" if test else address)


def _channel(request: HttpRequest, channel: AlertChannel, form: ServiceForm) -> HttpResponse:
    number, now = read_id(request.GET.get("test", "")), timezone.now()
    log = Notice.objects.filter(channel=channel).order_by("-id")
    test = log.filter(kind=NoticeKind.TEST, pk=number).first() if number else None
    context = {
        "place": "channels",
        "channel": channel,
        "service": form.service,
        "form": form,
        "test": test,
        "is_late": test is not None and now - test.created_at > TEST_PATIENCE,
        "now": now,
        # The test above shows its own result as it comes.
        "notices": log.exclude(pk=test.pk if test else 0).only(
            "kind", "state", "title", "created_at", "sent_at", "last_error", "channel_id"
        )[:5],
        "rules": AlertRule.objects.filter(channels=channel).only("name").order_by("name"),
    }
    return render(request, "alerts/channel.html", context)


@require_POST
@for_admins_of_all_olts
def channel_test(request: HttpRequest, channel_id: int) -> HttpResponse:
    channel, now = _find(channel_id), timezone.now()
    if not channel.enabled:
        messages.error(request, _("This channel is disabled: nothing is sent through it."))
        return redirect("settings-channel", channel.pk)
    with transaction.atomic():
        record(request.user, channel, Action.CHANGED, gettext_lazy("Sent a test"))
        test = channel_store.write_test(channel, now=now)
    if is_part(request):
        return _test_result(request, test)
    return redirect(f"{reverse('settings-channel', args=[channel.pk])}?test={test.pk}")


@require_safe
@for_admins_of_all_olts
def channel_test_result(request: HttpRequest, channel_id: int, notice_id: int) -> HttpResponse:
    tests = Notice.objects.filter(channel_id=channel_id, kind=NoticeKind.TEST)
    return _test_result(request, get_object_or_404(tests, pk=notice_id))


def _test_result(request: HttpRequest, test: Notice) -> HttpResponse:
    now = timezone.now()
    return render(
        request, "alerts/_test.html", {"test": test, "now": now, "is_late": now - test.created_at > TEST_PATIENCE}
    )


@require_POST
@for_admins_of_all_olts
def channel_switch(request: HttpRequest, channel_id: int) -> HttpResponse:
    """Enable or disable a channel; a disabled one keeps its address and its rules."""
    channel, enabled = _find(channel_id), request.POST.get("enabled") == "yes"
    with transaction.atomic():
        AlertChannel.objects.filter(pk=channel.pk).update(enabled=enabled, updated_at=timezone.now())
        record(request.user, channel, Action.CHANGED, changed_words({"enabled": channel.enabled}, {"enabled": enabled}))
    return redirect("settings-channel", channel.pk)


@require_POST
@for_admins_of_all_olts
def channel_revoke(request: HttpRequest, channel_id: int) -> HttpResponse:
    """Make every link that this channel sent so far invalid."""
    channel = _find(channel_id)
    with transaction.atomic():
        AlertChannel.objects.filter(pk=channel.pk).update(link_version=F("link_version") + 1)
        record(request.user, channel, Action.CHANGED, gettext_lazy("Revoked the links of its messages"))
    messages.success(request, _("Links in messages that were sent so far acknowledge nothing any more."))
    return redirect("settings-channel", channel.pk)


@require_http_methods(["GET", "HEAD", "POST"])
@for_admins_of_all_olts
def channel_delete(request: HttpRequest, channel_id: int) -> HttpResponse:
    """Say which rules lose a channel, ask once, and delete it with its log."""
    channel = _find(channel_id)
    if request.method == "POST":
        with transaction.atomic():
            record(request.user, channel, Action.DELETED)
            channel.delete()
        messages.success(request, _("The channel %(name)s was deleted.") % {"name": channel.name})
        return redirect("settings-channels")
    pairs = AlertRule.channels.through.objects.filter(alertrule_id=OuterRef("pk"), alertchannel__enabled=True)
    others = Exists(pairs.exclude(alertchannel_id=channel.pk))
    rules = AlertRule.objects.filter(Q(channels=channel) | Q(escalation_channels=channel)).distinct()
    context = {
        "place": "channels",
        "channel": channel,
        "rules": rules.annotate(others=others).order_by("name"),
        "waiting": Notice.objects.filter(channel=channel, state=NoticeState.WAITING).count(),
    }
    return render(request, "alerts/channel_delete.html", context)


def _find(channel_id: int) -> AlertChannel:
    return get_object_or_404(channel_store.stored_channels(), pk=channel_id)


def _minutes(label: Any, **fields: Any) -> forms.IntegerField:
    widget = forms.NumberInput(attrs={"min": 0, "max": MAX_MINUTES})
    return forms.IntegerField(label=label, min_value=0, max_value=MAX_MINUTES, widget=widget, **fields)


class RuleForm(_RuleModelForm):
    """One row of the matrix; its inputs belong to a form by name, since a form cannot span cells."""

    hold_minutes = _minutes(gettext_lazy("Minutes it must last before notifying"))
    clear_minutes = _minutes(gettext_lazy("Minutes of normality before it resolves"))
    escalate_minutes = _minutes(gettext_lazy("Escalates after minutes without acknowledgement"), required=False)

    class Meta:
        model = AlertRule
        fields = [
            "name",
            "enabled",
            "threshold",
            "hold_minutes",
            "severity",
            "channels",
            "quiet_from",
            "quiet_to",
            "clear_margin",
            "clear_minutes",
            "olt_group",
            "sends_resolved",
            "escalate_minutes",
            "escalation_channels",
        ]
        widgets = {
            "quiet_from": _TIME,
            "quiet_to": _TIME,
            "channels": forms.CheckboxSelectMultiple,
            "escalation_channels": forms.CheckboxSelectMultiple,
        }

    def __init__(self, rule: AlertRule, offered: "RuleChoices", data: Any = None) -> None:
        super().__init__(data, instance=rule, prefix=f"rule{rule.pk}", label_suffix="")
        self.condition = CONDITIONS[rule.kind]
        for name in ("channels", "escalation_channels"):
            field: Any = self.fields[name]
            field.queryset, field.choices = offered.channels, offered.ticks
        # Remove the fields that the condition does not use, and set the threshold's range.
        threshold = self.condition.threshold
        if threshold is None:
            del self.fields["threshold"], self.fields["clear_margin"]
        else:
            limits = {"min": threshold.low, "max": threshold.high, "step": "any", "placeholder": f"{threshold.usual:g}"}
            self.fields["threshold"].widget.attrs.update(limits)
            self.fields["threshold"].label = capfirst(str(threshold.unit))
        if not self.condition.has_olt or not offered.groups:
            del self.fields["olt_group"]
        else:
            group: Any = self.fields["olt_group"]
            group.choices = [("", _("all OLTs")), *offered.groups]
        for field in self.fields.values():
            field.widget.attrs["form"] = f"form-{rule.pk}"

    @property
    def is_more_open(self) -> bool:
        """Whether something of the rarer inputs is wrong."""
        rare = ("name", "clear_margin", "clear_minutes", "olt_group", "escalate_minutes", "escalation_channels")
        return any(name in self.errors for name in rare)

    def clean(self) -> dict[str, Any]:
        values: dict[str, Any] = super().clean() or self.cleaned_data
        rule = {"kind": self.instance.kind, "olt_group": self.instance.olt_group, **values}
        for name, text in find_faults(rule, stored=self.instance).items():
            self.add_error(name if name in self.fields else None, text)
        return values


class RuleChoices:
    """What every row offers, loaded once for all of them."""

    def __init__(self) -> None:
        self.channels = channel_store.stored_channels()
        rows = self.channels.order_by("name")
        self.ticks = [
            (each.pk, each.name if each.enabled else _("%(name)s (disabled)") % {"name": each.name}) for each in rows
        ]
        self.groups = list(OltGroup.objects.order_by("name").values_list("id", "name"))


@require_safe
@for_admins_of_all_olts
def rules_page(request: HttpRequest) -> HttpResponse:
    return _rules(request)


def _rules(request: HttpRequest, changed: RuleForm | None = None, **context: Any) -> HttpResponse:
    offered = RuleChoices()
    channels = [Prefetch(name, channel_store.stored_channels()) for name in ("channels", "escalation_channels")]
    rules = AlertRule.objects.select_related("olt_group").prefetch_related(*channels)
    forms_of = [
        changed if changed is not None and changed.instance.pk == rule.pk else RuleForm(rule, offered)
        for rule in rules.order_by("name")
    ]
    order = {code: number for number, code in enumerate(CONDITIONS)}
    shown = {
        "place": "rules",
        "forms": sorted(forms_of, key=lambda form: (order[form.instance.kind], form.instance.name)),
        "has_channels": bool(offered.ticks),
        "conditions": [(code, capfirst(str(condition.label))) for code, condition in CONDITIONS.items()],
        "zone": settings.TIME_ZONE,
        "is_wrong": changed is not None,
        **context,
    }
    return render(request, "alerts/rules.html", shown)


@require_POST
@for_admins_of_all_olts
def rule_save(request: HttpRequest, rule_id: int) -> HttpResponse:
    """Save one row; wrong input marks its cell, and everything typed stays."""
    rule = get_object_or_404(AlertRule, pk=rule_id)
    before = {name: getattr(rule, name) for name in RuleForm.Meta.fields if not name.endswith("channels")}
    form = RuleForm(rule, RuleChoices(), request.POST)
    is_saved = form.is_valid()
    if is_saved:
        with transaction.atomic():
            form.save()
            after = {name: form.cleaned_data[name] for name in before if name in form.cleaned_data}
            channels = [
                f"{name}: {', '.join(map(str, form.cleaned_data[name]))}"
                for name in form.changed_data
                if name.endswith("channels")
            ]
            record(
                request.user, rule, Action.CHANGED, ", ".join(filter(None, [changed_words(before, after), *channels]))
            )
    if is_part(request):
        return render(request, "alerts/_rule_state.html", {"form": form, "is_saved": is_saved})
    if not is_saved:
        return _rules(request, form)
    messages.success(request, _("Saved: %(name)s") % {"name": ready_name(rule.name)})
    return redirect(f"{reverse('settings-rules')}#rule-{rule.pk}")


@require_POST
@for_admins_of_all_olts
def rule_add(request: HttpRequest) -> HttpResponse:
    """Add a rule of a condition as it is usual; the matrix changes it."""
    kind, name = request.POST.get("kind", ""), request.POST.get("name", "").strip()
    condition = CONDITIONS.get(kind)
    fault = ""
    if condition is None:
        fault = _("Choose what it looks for.")
    elif not name or len(name) > 80:
        fault = _("Give it a name of at most 80 characters.")
    elif AlertRule.objects.filter(name=name).exists():
        fault = _("Another rule has this name.")
    if fault or condition is None:
        return _rules(request, new_kind=kind, new_name=name, new_fault=fault)
    usual = condition.default_rule
    with transaction.atomic():
        rule = AlertRule.objects.create(
            name=name,
            kind=kind,
            severity=usual.severity,
            hold_minutes=usual.hold_minutes,
            clear_minutes=usual.clear_minutes,
            clear_margin=usual.clear_margin,
            sends_resolved=usual.sends_resolved,
        )
        record(request.user, rule, Action.ADDED)
    return redirect(f"{reverse('settings-rules')}#rule-{rule.pk}")


@require_http_methods(["GET", "HEAD", "POST"])
@for_admins_of_all_olts
def rule_delete(request: HttpRequest, rule_id: int) -> HttpResponse:
    rule = get_object_or_404(AlertRule, pk=rule_id)
    if request.method == "POST":
        with transaction.atomic():
            record(request.user, rule, Action.DELETED)
            rule.delete()
        messages.success(request, _("The rule %(name)s was deleted.") % {"name": ready_name(rule.name)})
        return redirect("settings-rules")
    alerts = rule.alerts.exclude(state=AlertState.PENDING)
    counts = alerts.aggregate(all=Count("id"), firing=Count("id", filter=Q(state=AlertState.FIRING)))
    return render(request, "alerts/rule_delete.html", {"place": "rules", "rule": rule, "counts": counts})
