"""What a page must not hold, whoever wrote the texts on it."""

import re
from html.parser import HTMLParser

OWN_ADDRESS = re.compile(r"^(?!//|[a-z]+:)|^data:image/|^mailto:", re.IGNORECASE)


def offences_of(page: str) -> list[str]:
    """Name what the policy would stop, or what would reach another machine."""
    parser = _Offences()
    parser.feed(page)
    return parser.found


class _Offences(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self._is_code = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        self._is_code = tag == "script" and "src" not in named and named.get("type") not in ("application/json",)
        self.found += [f"{tag} {name}" for name in named if name.startswith("on")]
        for name in ("src", "href", "action", "formaction", "srcset", "data", "poster"):
            address = named.get(name) or ""
            if tag != "a" and not OWN_ADDRESS.match(address):
                self.found.append(f"{tag} {name}={address}")
            if address.lower().startswith("javascript:"):
                self.found.append(f"{tag} {name}={address}")

    def handle_data(self, data: str) -> None:
        if self._is_code and data.strip():
            self.found.append(f"script {data.strip()[:60]}")
