"""Adds, changes and tests channels, in one way for pages and API; a secret goes in and does not come out."""

from dataclasses import dataclass
from datetime import datetime
from secrets import token_hex

from django.conf import settings
from django.db.models import QuerySet
from django.utils import translation
from django.utils.translation import gettext as _

from facho.alerts.models import AlertChannel, ChannelKind, Notice, NoticeKind, Severity
from facho.alerts.schemes import ChannelFault, check_service, check_signing_key, check_webhook
from facho.hosts.secrets import Secret

SECRETS = ("url", "signing_key")
MAX_SHOWN = AlertChannel._meta.get_field("shown_as").max_length


@dataclass(frozen=True, slots=True)
class ChannelSecrets:
    """What a person filled in; empty: the stored one stays."""

    url: Secret
    signing_key: Secret


def stored_channels() -> QuerySet[AlertChannel]:
    """Select channels without their secrets."""
    return AlertChannel.objects.defer(*SECRETS)


def find_faults(kind: str, given: ChannelSecrets, *, stored: AlertChannel | None) -> dict[str, str]:
    """Say by input what keeps a channel from being saved; a channel of another kind needs an address of its kind."""
    faults = {}
    is_same = stored is not None and stored.kind == kind
    try:
        if given.url or not is_same:
            _shown(kind, given.url)
    except ChannelFault as fault:
        faults["url"] = str(fault)
    try:
        if kind == ChannelKind.WEBHOOK and (given.signing_key or not is_same):
            check_signing_key(given.signing_key.reveal())
    except ChannelFault as fault:
        faults["signing_key"] = str(fault)
    return faults


def save_channel(channel: AlertChannel, given: ChannelSecrets) -> None:
    """Write a channel that has no faults; a secret that was not given is neither read nor written."""
    columns = ["name", "kind", "language", "enabled", "updated_at"]
    if given.url:
        channel.url, channel.shown_as = given.url, _shown(channel.kind, given.url)[:MAX_SHOWN]
        columns += ["url", "shown_as"]
    if given.signing_key or channel.kind != ChannelKind.WEBHOOK:
        channel.signing_key = given.signing_key if channel.kind == ChannelKind.WEBHOOK else Secret("")
        columns.append("signing_key")
    channel.save(update_fields=columns if channel.pk else None)


def write_test(channel: AlertChannel, *, now: datetime) -> Notice:
    """Put a test message into the outbox, where it goes first and is tried once."""
    with translation.override(channel.language or settings.LANGUAGE_CODE):
        title, body = _("Test"), _("This channel works: Facho tells here what is wrong.")
    return Notice.objects.create(
        key=f"test-{token_hex(12)}",
        channel=channel,
        kind=NoticeKind.TEST,
        severity=Severity.INFO,
        title=f"Facho: {title}",
        body=body,
        created_at=now,
        next_try_at=now,
    )


def _shown(kind: str, url: Secret) -> str:
    return check_webhook(url.reveal()) if kind == ChannelKind.WEBHOOK else check_service(url.reveal())
