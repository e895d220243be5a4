"""Secrets at rest: encrypted in the column, wrapped in memory so that no repr, log or traceback shows them.

The secret of a device is encrypted together with the address that it was entered for. If the row is moved, or the
ciphertext copied to another row, revealing it there is refused.
"""

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
# Between a place and its secret; neither can hold it, as both are printable.
_END_OF_PLACE = "\0"


class UndecryptableSecret(Exception):
    """The stored secret was encrypted with a key that this installation does not have."""


class ForeignSecret(Exception):
    """The stored secret was given for another place."""


@final
class Secret:
    """A string that shows itself only when asked by name; `place` is what it was given for, where that is stored."""

    __slots__ = ("_text", "place")

    def __init__(self, text: str, place: str = "") -> None:
        self._text = text
        self.place = place

    def reveal(self) -> str:
        """Return the plain text; call it only where it is used."""
        return self._text

    def reveal_for(self, place: str) -> str:
        """Return the plain text for a place; ForeignSecret when it was given for another one, or for none."""
        if self._text and self.place != place:
            raise ForeignSecret(_("A stored SNMP secret is for another address: enter it again."))
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
    text = f"{secret.place}{_END_OF_PLACE}{secret.reveal()}" if secret.place else secret.reveal()
    return _cipher(tuple(settings.FACHO_ENCRYPTION_KEYS)).encrypt(text.encode()).decode()


def decrypt(stored: str) -> Secret:
    if not stored:
        return Secret("")
    try:
        text = _cipher(tuple(settings.FACHO_ENCRYPTION_KEYS)).decrypt(stored.encode()).decode()
    except InvalidToken as error:
        raise UndecryptableSecret(
            _("A stored SNMP secret cannot be decrypted: restore the encryption keys file, or enter it again.")
        ) from error
    place, end, secret = text.partition(_END_OF_PLACE)
    return Secret(secret, place) if end else Secret(text)


class SecretField(_SecretColumn):
    """A text column that holds ciphertext and whose attribute is a Secret.

    With `bound_to`, the name of the row's attribute that says where it leads, a secret is stored for that place alone:
    saving a row with another address erases the secret of the old one, even if no form asked for it again.
    """

    def __init__(self, *args: Any, bound_to: str = "", **kwargs: Any) -> None:
        # Not part of the column, so no migration knows it.
        self.bound_to = bound_to
        kwargs.setdefault("blank", True)
        kwargs.setdefault("default", "")
        super().__init__(*args, **kwargs)

    def deconstruct(self) -> tuple[str, str, Any, Any]:
        """Be a plain text column to migrations: they import none of our code and see ciphertext."""
        name, _path, args, kwargs = super().deconstruct()
        return name, "django.db.models.TextField", args, kwargs

    def from_db_value(self, value: str | None, expression: Any, connection: Any) -> Secret:
        return decrypt(value or "")

    def to_python(self, value: Any) -> Secret:
        """Accept plain text from forms and code."""
        return value if isinstance(value, Secret) else Secret(value or "")

    def pre_save(self, model_instance: models.Model, add: bool) -> Secret:
        """Bind a secret that was just given to the place of its row."""
        secret = self.to_python(super().pre_save(model_instance, add))
        if not self.bound_to or not secret:
            return secret
        place = str(getattr(model_instance, self.bound_to))
        bound = Secret(secret.reveal() if secret.place in ("", place) else "", place)
        setattr(model_instance, self.attname, bound)
        return bound

    def get_prep_value(self, value: Any) -> str:
        secret = self.to_python(value)
        if self.bound_to and secret and not secret.place:
            raise TypeError(f"{self.name} is stored for a place: save the row, an update does not know it")
        return encrypt(secret)

    def value_to_string(self, obj: models.Model) -> str:
        """Give nothing to serializers and fixtures."""
        return ""
