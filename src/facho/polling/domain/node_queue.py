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
        return self.qsize() > self._overload_length or any(node.is_delayed(now) for node in self._nodes.values())
