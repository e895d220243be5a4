"""What a message gets when it is sent: a link to its page, a signed link that acknowledges, and affected customers.

None of it is stored with the message: not everybody with access to the log of messages may acknowledge.
"""

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import chain, islice
from typing import NamedTuple
from urllib.parse import urlencode

from django.conf import settings
from django.core.signing import BadSignature, Signer
from django.db import transaction
from django.db.models import QuerySet
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from facho.accounts.audit import Action, console, record
from facho.alerts.condition import plain
from facho.alerts.http_request import read_http_url
from facho.alerts.models import Alert, AlertState, Notice, NoticeKind, PublicAddress
from facho.hosts.store import OLT_SECRETS
from facho.infrastructure.spreadsheet import guard
from facho.onus.models import Onu, OnuCustomer, Outage
from facho.onus.outages import onus_of
from facho.onus.words import OutageScopes

# A message names its first customers; the attached list has the others.
NAMES = 10
# No mail server takes a list of any size; more customers than this are a whole OLT.
MOST_ROWS = 2_000
LINK_DAYS = timedelta(days=7)
_ASKING = (NoticeKind.OPENED, NoticeKind.ESCALATED, NoticeKind.DIGEST)
_NAMED_SCOPES = (OutageScopes.PON, OutageScopes.CARD, OutageScopes.OLT)


def load_public_address() -> str:
    """Return where people reach these pages, without a slash at its end; empty when it is not known."""
    if settings.FACHO_PUBLIC_URL:
        return settings.FACHO_PUBLIC_URL.rstrip("/")
    return PublicAddress.objects.values_list("url", flat=True).first() or ""


def save_public_address(url: str) -> PublicAddress:
    """Store an address that `read_public_address` accepted."""
    row, _is_new = PublicAddress.objects.update_or_create(pk=1, defaults={"url": url})
    return row


def read_public_address(text: str) -> str:
    """Read the address of these pages; ValueError when it is not one."""
    parts = read_http_url(text.strip())
    if parts.query or parts.path.strip("/"):
        raise ValueError
    return f"{parts.scheme}://{parts.netloc}"


class Affected(NamedTuple):
    """An ONU that a message is about, and its customer, in the order of the attached list."""

    customer: str
    phone: str
    address: str
    description: str
    code: str
    olt: str
    place: str

    @classmethod
    def of(cls, onu: Onu) -> "Affected":
        """Read it out of an ONU that was loaded with its OLT, port and customer."""
        customer = getattr(onu, "customer", None) or OnuCustomer()
        return cls(
            customer=customer.label,
            phone=customer.phone,
            address=customer.address,
            description=onu.description,
            code=onu.serial or onu.mac or "",
            olt=onu.olt.name,
            place=f"{onu.pon_port}/{onu.onu_id}",
        )

    @property
    def name(self) -> str:
        return self.customer or self.description or self.code


@dataclass(frozen=True, slots=True)
class Addition:
    """What is added to a stored message; `names` is text from outside, the links are ours."""

    names: str = ""
    page: str = ""
    acknowledge: str = ""
    csv: str = ""

    @property
    def footer(self) -> str:
        """The links as lines, in the active language."""
        lines = [_("Open: %(address)s") % {"address": self.page}] if self.page else []
        if self.acknowledge:
            lines.append(_("Acknowledge: %(address)s") % {"address": self.acknowledge})
        return "\n".join(lines)


NOTHING_ADDED = Addition()


def load_addition(notice: Notice) -> Addition:
    """Load what is added to a message, in the active language; at most five queries."""
    address = load_public_address()
    if notice.kind == NoticeKind.TEST:
        return Addition(page=address and f"{address}/")
    if notice.kind == NoticeKind.REPORT:
        return Addition(page=address and f"{address}/reports/?month={notice.payload['month']}")
    alerts = list(Notice.alerts.through.objects.filter(notice_id=notice.pk).values_list("alert_id", flat=True))
    shown = list(Alert.objects.filter(id__in=alerts).select_related("rule").order_by("id"))
    names, table = "", ""
    if notice.kind in _ASKING:
        going_on = [alert for alert in shown if alert.resolved_at is None]
        affected = load_affected(going_on)
        names = "" if notice.kind == NoticeKind.DIGEST else name_affected(affected, going_on)
        table = write_csv(affected) if affected else ""
    if not address or not shown:
        return Addition(names, csv=table)
    is_open = any(alert.state == AlertState.FIRING and alert.acknowledged_at is None for alert in shown)
    token = sign_link(notice) if notice.kind in _ASKING and is_open else ""
    return Addition(names, address + page_path(shown), token and f"{address}/acknowledge/{token}/", table)


def page_path(alerts: Sequence[Alert]) -> str:
    """Return the path of the page about these alerts; a URL configuration would be too much for an engine to load."""
    if len(alerts) == 1:
        return f"/alerts/{alerts[0].pk}/"
    kinds, olts = ({getattr(alert, name) for alert in alerts} for name in ("rule_id", "olt_id"))
    narrowed = {}
    if len(kinds) == 1:
        narrowed["kind"] = alerts[0].rule.kind
    if len(olts) == 1 and alerts[0].olt_id:
        narrowed["olt"] = str(alerts[0].olt_id)
    return f"/alerts/?{urlencode(narrowed)}" if narrowed else "/alerts/"


def load_affected(alerts: Sequence[Alert]) -> list[Affected]:
    """Load the ONUs that alerts are about with their customers, by place; two queries, or three with an OLT's."""
    onu_ids = [alert.facts["onu_id"] for alert in alerts if "onu_id" in alert.facts]
    outages = [alert.facts["outage_id"] for alert in alerts if alert.facts.get("scope") in _NAMED_SCOPES]
    found: list[QuerySet[Onu]] = []
    if outages:
        found += [onus_of(outage) for outage in Outage.objects.filter(id__in=outages).order_by("id")]
    if onu_ids:
        onus = Onu.objects.filter(id__in=onu_ids).select_related("olt", "pon_port").defer(*OLT_SECRETS)
        found.append(onus.order_by("olt__name", "pon_port__frame", "pon_port__slot", "pon_port__port", "onu_id"))
    rows: Iterator[Onu] = chain.from_iterable(each.select_related("customer")[:MOST_ROWS] for each in found)
    return [Affected.of(onu) for onu in islice(rows, MOST_ROWS)]


def name_affected(affected: Sequence[Affected], alerts: Sequence[Alert]) -> str:
    """Name the first customers of outages; alerts about single ONUs name theirs in each line."""
    if not affected or not any("outage_id" in alert.facts for alert in alerts):
        return ""
    names = [plain(each.name) for each in affected[:NAMES] if each.name]
    left = len(affected) - len(names)
    text = _("Affected: %(names)s") % {"names": ", ".join(names)}
    if left <= 0:
        return text
    more = ngettext("and %(count)s more", "and %(count)s more", left) % {"count": left}
    return f"{text} {more}"


def write_csv(affected: Sequence[Affected]) -> str:
    """Write the affected customers as a table, safe for spreadsheets."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([_("customer"), _("phone"), _("address"), _("description"), _("serial"), _("OLT"), _("place")])
    writer.writerows(map(guard, each) for each in affected)
    return text.getvalue()


def _signer() -> Signer:
    return Signer(salt="facho.alerts.links", sep=".")


def sign_link(notice: Notice) -> str:
    """Sign a link that acknowledges what this message of this channel is about, for some days."""
    expires = int((notice.created_at + LINK_DAYS).timestamp())
    return _signer().sign(f"{notice.pk}-{notice.channel.link_version}-{expires}")


def open_link(token: str, *, now: datetime) -> Notice | None:
    """Return the message of a link with its channel; None if it is forged, expired or revoked."""
    try:
        notice_id, version, expires = map(int, _signer().unsign(token).split("-"))
    except (BadSignature, ValueError):
        return None
    if expires <= now.timestamp():
        return None
    known = Notice.objects.filter(kind__in=_ASKING, channel__enabled=True, channel__link_version=version)
    secrets = ("channel__url", "channel__signing_key")
    return known.select_related("channel").defer(*secrets).filter(pk=notice_id).first()


def alerts_of(notice: Notice) -> list[Alert]:
    """Load what a message is about, the gravest cases of its rule in their order; one query."""
    return list(notice.alerts.select_related("rule", "acknowledged_by").order_by("id"))


@transaction.atomic
def acknowledge_by_link(notice: Notice, *, now: datetime) -> int:
    """Acknowledge what fires of a message, through its channel; a link does so once. Returns how many."""
    if not Notice.objects.filter(pk=notice.pk, link_used_at=None).update(link_used_at=now):
        return 0
    open_ids = list(
        notice.alerts.filter(state=AlertState.FIRING, acknowledged_at=None).order_by("id").values_list("id", flat=True)
    )
    taken = Alert.objects.filter(id__in=open_ids, acknowledged_at=None)
    done = taken.update(acknowledged_at=now, acknowledged_by=None, acknowledged_through=notice.channel.name)
    words = _("Acknowledged by a link through the channel %(name)s") % {"name": notice.channel.name}
    for alert in Alert.objects.filter(id__in=open_ids).select_related("rule"):
        record(console(), alert, Action.CHANGED, words)
    return done
