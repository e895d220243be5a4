"""Remembers the engines of v3 agents, so that discovery and the derivation of keys are not paid for by every run."""

from collections import OrderedDict

from facho.polling.snmp.target import Target
from facho.polling.snmp.user_security import Engine

# Some 500 bytes each: enough for any network that one process polls.
MAX_ENGINES = 4_096


class KnownEngines:
    """Engines by device and credential; the one that was not used for longest makes room."""

    def __init__(self, limit: int = MAX_ENGINES) -> None:
        self._limit = limit
        self._engines: OrderedDict[object, Engine] = OrderedDict()

    def __len__(self) -> int:
        return len(self._engines)

    def find(self, target: Target) -> Engine | None:
        """Return what is known of a device for this credential: another key makes another engine."""
        key = _key(target)
        if key in self._engines:
            self._engines.move_to_end(key)
        return self._engines.get(key)

    def remember(self, target: Target, engine: Engine) -> None:
        """Keep an engine."""
        self._engines[_key(target)] = engine
        if len(self._engines) > self._limit:
            self._engines.popitem(last=False)

    def forget(self, target: Target) -> None:
        """Drop an engine that the device no longer is."""
        self._engines.pop(_key(target), None)


def _key(target: Target) -> object:
    return target.address, target.port, target.credential
