"""How asynchronous code reaches the database: through one gateway, in whole store calls."""

from collections.abc import Callable
from typing import ParamSpec, Protocol, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class DatabaseGateway(Protocol):
    """Runs a synchronous store function off the event loop; each call is one unit of work."""

    async def run(self, call: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Return what `call` returns, or raise what it raises."""
