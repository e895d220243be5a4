"""Secrets at rest: encrypted in the column, wrapped in memory so that no repr, log or traceback shows them."""

from functools import lru_cache
from typing import TYPE_CHECKING, Any, final

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import models
from django.utils.translation import gettext as _

if TYPE_CHECKING:
    _SecretColumn = models.TextField["Secret | str", "Secret"]
else:
    _SecretColumn = models.TextField  # Django's fields take type parameters in their stubs only

MASK = "********"


class UndecryptableSecret(Exception):
    """The stored secret was encrypted with a key that this installation does not have."""


@final
class Secret:
    """A string that shows itself only when asked by name."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """Return the plain text; call it only where it is used."""
        return self._text

    def __bool__(self) -> bool:
        return bool(self._text)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and self._text == other._text

    def __hash__(self) -> int:
        return hash(self._text)

    def __repr__(self) -> str:
        return MASK if self._text else ""

    __str__ = __repr__

    def __reduce__(self) -> Any:
        raise TypeError("a Secret does not travel")


@lru_cache(maxsize=4)
def _cipher(keys: tuple[str, ...]) -> MultiFernet:
    try:
        return MultiFernet([Fernet(key) for key in keys])
    except ValueError as error:
        raise ImproperlyConfigured("The encryption keys file holds no valid Fernet key.") from error


def encrypt(secret: Secret) -> str:
    """Encrypt with the first key; an empty secret stays empty, so that its absence can be queried."""
    if not secret:
        return ""
    return _cipher(tuple(settings.FACHO_ENCRYPTION_KEYS)).encrypt(secret.reveal().encode()).decode()


def decrypt(stored: str) -> Secret:
    """Decrypt with whichever key fits."""
    if not stored:
        return Secret("")
    try:
        return Secret(_cipher(tuple(settings.FACHO_ENCRYPTION_KEYS)).decrypt(stored.encode()).decode())
    except InvalidToken as error:
        raise UndecryptableSecret(
            _("A stored SNMP secret cannot be decrypted: restore the encryption keys file, or enter it again.")
        ) from error


class SecretField(_SecretColumn):
    """A text column that holds ciphertext and whose attribute is a Secret."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs.setdefault("blank", True)
        kwargs.setdefault("default", "")
        super().__init__(*args, **kwargs)

    def from_db_value(self, value: str | None, expression: Any, connection: Any) -> Secret:
        """Decrypt on the way out of the database."""
        return decrypt(value or "")

    def to_python(self, value: Any) -> Secret:
        """Accept plain text from forms and code."""
        return value if isinstance(value, Secret) else Secret(value or "")

    def get_prep_value(self, value: Any) -> str:
        """Encrypt on the way in."""
        return encrypt(self.to_python(value))

    def value_to_string(self, obj: models.Model) -> str:
        """Give nothing to serializers and fixtures."""
        return ""
