"""What tests of alerts need: rules, channels, ONUs of a port, and one pass after the other."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from facho.alerts.engine import run_pass
from facho.alerts.models import Alert, AlertChannel, AlertRule, Notice
from facho.hosts.models import Olt
from facho.infrastructure.secrets import Secret
from facho.onus.models import Onu, OnuEvent, OnuReading, Outage, PonPort
from factories import NOW, make_olt


def minute(number: float) -> datetime:
    """The moment so many minutes after the beginning."""
    return NOW + timedelta(minutes=number)


def make_channel(name: str = "night shift", language: str = "en", **fields: Any) -> AlertChannel:
    """A channel whose messages are read in English."""
    return AlertChannel.objects.create(name=name, language=language, url=Secret("json://sink.example"), **fields)


def make_rule(kind: str, *channels: AlertChannel, **fields: Any) -> AlertRule:
    """A rule that notifies at once, unless a test says otherwise."""
    rule = AlertRule.objects.create(**{"name": f"Rule {kind}", "kind": kind, **fields})
    rule.channels.set(channels)
    return rule


def answering_olt() -> Olt:
    """An OLT that answers."""
    olt = make_olt()
    Olt.objects.filter(id=olt.id).update(reachability="up")
    return olt


def add_onus(olt: Olt, count: int, *, port: int = 0, dbm: float = -20) -> list[Onu]:
    """ONUs of a port that are online and receive so much."""
    pon_port, _ = PonPort.objects.get_or_create(olt=olt, frame=0, slot=1, port=port)
    onus = [
        Onu.objects.create(
            olt=olt, pon_port=pon_port, onu_id=number, serial=f"S{olt.id}-{port}-{number}", first_seen_at=NOW
        )
        for number in range(count)
    ]
    OnuReading.objects.bulk_create(OnuReading(onu=onu, run_state="online") for onu in onus)
    set_light(onus, dbm)
    return onus


def set_light(onus: Iterable[Onu], dbm: float) -> None:
    """Let a poll have read this light of them."""
    OnuReading.objects.filter(onu__in=list(onus)).update(rx_power_cdbm=round(dbm * 100))


def drop_light(onu: Onu, before: float, after: float, *, at: datetime = NOW) -> None:
    """Let a poll have seen the light of an ONU drop."""
    set_light([onu], after)
    OnuEvent.objects.create(
        olt=onu.olt,
        pon_port=onu.pon_port,
        onu=onu,
        onu_number=onu.onu_id,
        at=at,
        kind="power_drop",
        before=f"{before:.2f}",
        after=f"{after:.2f}",
    )


def cut(olt: Olt, onus: Iterable[Onu], *, port: int = 0, at: datetime = NOW) -> Outage:
    """Let a poll have found a port out."""
    gone = list(onus)
    outage = Outage.objects.create(
        olt=olt,
        scope="pon",
        slot=1,
        port=port,
        cause="fibre",
        started_at=at,
        resumed_at=at,
        affected=len(gone),
        down=len(gone),
    )
    OnuReading.objects.filter(onu__in=gone).update(run_state="offline", outage=outage)
    return outage


def repair(outage: Outage, *, at: datetime) -> None:
    """Let a poll have found everybody back."""
    Outage.objects.filter(id=outage.id).update(ended_at=at, down=0)
    OnuReading.objects.filter(outage=outage).update(run_state="online")


def passes(*minutes: float) -> None:
    """Let the engine look at these minutes."""
    for number in minutes:
        run_pass(minute(number))


def messages() -> list[tuple[str, str]]:
    """Kind and title of every message so far, in the order in which they were written."""
    return list(Notice.objects.order_by("id").values_list("kind", "title"))


def kinds() -> list[str]:
    """The kind of every message so far."""
    return [kind for kind, _ in messages()]


def open_subjects() -> list[str]:
    """What fires now."""
    return list(Alert.objects.filter(state="firing").order_by("subject").values_list("subject", flat=True))
