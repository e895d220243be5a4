"""Chooses the decoder of answers: the compiled one, or its twin in Python where that could not be built."""

try:
    from facho.polling.snmp import _pages as decoder
except ImportError:
    from facho.polling.snmp import python_pages as decoder  # type: ignore[no-redef]

__all__ = ["decoder", "is_compiled"]


def is_compiled() -> bool:
    return decoder.__name__.endswith("._pages")
