"""A store of outages in memory: applies changes as tables would, and gives back rows after a restart."""

from collections.abc import Iterable
from dataclasses import replace

from facho.polling.domain.outages import OutageChange, OutagePlace, OutageRecord


class OutageRows:
    """All outages by id, and which one each ONU was last a part of."""

    def __init__(self) -> None:
        self.rows: dict[int, OutageRecord] = {}
        self.outage_of: dict[int, int] = {}

    def apply(self, changes: Iterable[OutageChange]) -> None:
        """Write changes: rows first, so that a larger outage finds its parts and they find it."""
        written = [(self._write(change.outage), change) for change in changes]
        for outage_id, change in written:
            self.outage_of.update(dict.fromkeys(change.joined, outage_id))
            for place in change.absorbed:
                part = self._latest(place)
                self.rows[part] = replace(self.rows[part], part_of=outage_id)
            for place in change.released:
                part = self._latest(place)
                self.rows[part] = replace(self.rows[part], part_of=None)
        open_places = [outage.place for outage in self.rows.values() if outage.is_open]
        assert len(open_places) == len(set(open_places)), "two open outages at one place"

    @property
    def reported(self) -> list[OutageRecord]:
        """What an operator is shown: whatever is no part of something larger, in order of time."""
        whole = [outage for outage in self.rows.values() if outage.part_of is None]
        return sorted(whole, key=lambda outage: (outage.started_at, outage.place))

    def _write(self, outage: OutageRecord) -> int:
        outage_id = outage.outage_id or len(self.rows) + 1
        self.rows[outage_id] = replace(outage, outage_id=outage_id)
        return outage_id

    def _latest(self, place: OutagePlace) -> int:
        return max(outage_id for outage_id, outage in self.rows.items() if outage.place == place)
