"""The nodes that are due and wait, most urgent first. It is derived from rows at every look, never stored."""

from collections.abc import Iterable
from datetime import datetime

from facho.polling.domain.planning import DueNode, order_between_olts

# More than this many waiting nodes cannot be an ordinary burst.
OVERLOAD_LENGTH = 800


class NodeQueue:
    """A set of waiting nodes in the order in which free pollers take them; each node is in it once."""

    def __init__(self, nodes: Iterable[DueNode] = (), *, overload_length: int = OVERLOAD_LENGTH) -> None:
        self._nodes: dict[int, DueNode] = {}
        self._overload_length = overload_length
        for node in nodes:
            self.put(node)

    def put(self, node: DueNode) -> None:
        """Add the node, or replace what is known of it."""
        self._nodes[node.node_id] = node

    def qsize(self) -> int:
        """Count the waiting nodes."""
        return len(self._nodes)

    def peek(self, count: int, *, now: datetime) -> list[DueNode]:
        """Return the first `count` nodes and leave the queue as it is."""
        return order_between_olts(self._nodes.values(), now)[:count]

    def is_overload(self, *, now: datetime) -> bool:
        """Tell whether a node has lost a whole slot by waiting, or too many wait."""
        return self._is_too_long() or bool(self._delayed(now))

    def is_held_by_silence(self, *, now: datetime) -> bool:
        """Tell whether an overload is no want of pollers: whoever lost a slot waits for an OLT that is silent."""
        delayed = self._delayed(now)
        return bool(delayed) and not self._is_too_long() and all(node.is_olt_silent for node in delayed)

    def _is_too_long(self) -> bool:
        return self.qsize() > self._overload_length

    def _delayed(self, now: datetime) -> list[DueNode]:
        return [node for node in self._nodes.values() if node.is_delayed(now)]
