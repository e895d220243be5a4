"""Health answers for a supervisor: alive, and ready, which means that it polls and stores."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from django.db import DatabaseError
from django.http import HttpRequest, JsonResponse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from facho.core.database import named, read_database_version
from facho.infrastructure.standstill import Standstill, StandstillWords, standstill_of, words_of
from facho.infrastructure.storage import in_english
from facho.polling.domain.lease import Shard
from facho.zabbix_pollers.activity import is_led, our_shards
from facho.zabbix_pollers.store import Leader, load_leaders


@dataclass(slots=True)
class Seen:
    """What this process last saw of polling and of its storage: by the leader's watch, and by failing requests."""

    is_watched: bool = False
    standstill: Standstill | None = None
    # Those of several engines that it concerns while the others poll.
    engines: str = ""
    # Of a request that failed since the last look.
    noticed: Standstill | None = None

    @property
    def reason(self) -> Standstill | None:
        """Why nothing is polled or stored, as far as this process knows."""
        return self.standstill or self.noticed


seen = Seen()


@never_cache
@require_safe
def livez(request: HttpRequest) -> JsonResponse:
    """Say that this process answers; nothing else is checked."""
    return JsonResponse({"status": "alive"})


@never_cache
@require_safe
def readyz(request: HttpRequest) -> JsonResponse:
    """Say whether the database fits this version, and whether what is due is polled and stored."""
    code, reason = _why_not_ready()
    if reason:
        return JsonResponse({"status": "not ready", "code": code, "reason": reason}, status=503)
    return JsonResponse({"status": "ready"})


def notice(error: BaseException | None) -> Standstill | None:
    """Report a request that failed because of the storage; the watch checks whether it lasts."""
    reason = standstill_of(error)
    if reason is not None:
        seen.noticed = reason
    return reason


def standstill_in_head(request: HttpRequest) -> dict[str, StandstillWords | None]:
    """Give every page the reason why nothing is polled; asks no database."""
    return {"standstill": words_of(seen.reason, seen.engines) if seen.reason else None}


def _why_not_ready() -> tuple[str, str]:
    try:
        version = read_database_version()
        if version.missing:
            return "migrations", f"migration {named(version.missing)} is not applied"
        if version.unknown:
            return "migrations", f"the database is from a newer version ({named(version.unknown)})"
        standstill, engines = seen.reason, seen.engines
        if not seen.is_watched:
            # By the wall clock, where no process watches.
            leaders, now = load_leaders(our_shards()), timezone.now()
            standstill, engines = judge(leaders, [shard for shard in leaders if not is_led(leaders[shard], now)])
    except DatabaseError as error:
        # The message of the driver may hold the address and the user; the log of the server has it.
        standstill, engines = standstill_of(error) or Standstill.UNREACHABLE, ""
    return (standstill, in_english(standstill, engines)) if standstill else ("", "")


def judge(leaders: Mapping[Shard, Leader], missing: Collection[Shard]) -> tuple[Standstill | None, str]:
    """Return why nothing is polled, and by which engines if others poll; what a leader says comes first."""
    reported = {shard: each.standstill for shard, each in leaders.items() if each.standstill and shard not in missing}
    if not reported and not missing:
        return None, ""
    concerned = list(reported) or list(missing)
    engines = "" if len(concerned) == len(leaders) else ", ".join(map(str, concerned))
    return next(iter(reported.values()), Standstill.ENGINE_GONE if engines else Standstill.NO_LEADER), engines
