"""Every address has a name of its own: of two that share one, a form or a link silently leads to the later."""

from collections import Counter
from collections.abc import Iterator

from django.urls import URLPattern, URLResolver, get_resolver


def names(resolver: URLResolver) -> Iterator[str]:
    for pattern in resolver.url_patterns:
        if isinstance(pattern, URLPattern):
            yield pattern.name or ""
        elif not pattern.namespace:
            yield from names(pattern)


def test_no_two_addresses_share_a_name() -> None:
    counted = Counter(filter(None, names(get_resolver())))

    assert [name for name, number in counted.items() if number > 1] == []
