"""Credentials of an OLT: which it has and lacks; none is ever sent to another address."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from django.conf import settings
from django.utils import translation
from django.utils.translation import gettext as _

from facho.hosts.models import Olt, OltAddress, SnmpVersionChoice
from facho.hosts.olt_entry import SECRET_COLUMNS, Fault, label_of
from facho.infrastructure.secrets import Secret, UndecryptableSecret
from facho.polling.snmp.target import SUPPORTED


@dataclass(frozen=True, slots=True)
class PlacedSecrets:
    """The secret columns to write, and those erased with the old host or port."""

    columns: tuple[str, ...]
    erased: tuple[str, ...] = ()


def place_secrets(olt: Olt, before: OltAddress | None, given: Mapping[str, Secret | str]) -> PlacedSecrets:
    """Prepare the credentials of a changed OLT of `stored_olts` for saving.

    Every way of changing a connection goes through here; `given` are the CREDENTIAL_COLUMNS that were entered. With
    another host or port all other secrets are erased, also those of other SNMP versions: otherwise a user allowed to
    change the address but not read a secret could have it sent there. When a name resolves to a new address, the stored
    secrets stay.
    """
    for name, secret in given.items():
        setattr(olt, name, secret)
    written = [name for name in SECRET_COLUMNS if name in given]
    if before is None or before == olt.place:
        return PlacedSecrets(tuple(written))
    left = [name for name in stored_secrets(olt) if name not in given]
    if not before.is_left_for(olt.place):
        return PlacedSecrets((*written, *(name for name in left if _rebind(olt, name, before))))
    erased = [*left, *(["v3_user"] if olt.v3_user and "v3_user" not in given else [])]
    for name in erased:
        setattr(olt, name, "")
    return PlacedSecrets((*written, *left), tuple(erased))


def erased_words(columns: Iterable[str]) -> str:
    """Name the erased secrets for the audit log, in the installation's language; empty if none."""
    with translation.override(settings.LANGUAGE_CODE):
        names = ", ".join(label_of(name) for name in columns)
        return _("Erased, since host or port changed: %(secrets)s") % {"secrets": names} if names else ""


def stored_secrets(olt: Olt) -> list[str]:
    """Return the secrets an OLT of `stored_olts` has; a new one has none."""
    return [name for name in SECRET_COLUMNS if getattr(olt, f"has_{name}", False)]


def find_credential_faults(
    olt: Olt, *, given: Collection[str], stored: Collection[str], is_moved: bool
) -> Iterator[Fault]:
    """List the credentials an OLT lacks; stored ones do not count for another address, or it would get them."""

    def lacking(secret: str, name: str, missing: str) -> Iterator[Fault]:
        if secret not in (*given, *stored):
            yield Fault(secret, missing)
        elif secret not in given and is_moved:
            yield Fault(secret, _("%s: enter it again; the stored one is not sent to another address or port") % name)

    if olt.snmp_version != SnmpVersionChoice.V3:
        yield from lacking("community", _("community"), _("community is missing"))
        return
    if not olt.v3_user:
        yield Fault("v3_user", _("SNMPv3 needs a user"))
    if olt.v3_priv_protocol and not olt.v3_auth_protocol:
        yield Fault("v3_priv_protocol", _("privacy needs an authentication protocol"))
    yield from _combination_faults(olt.v3_auth_protocol, olt.v3_priv_protocol)
    if olt.v3_auth_protocol:
        yield from lacking("v3_auth_key", _("authentication key"), _("authentication key is missing"))
    if olt.v3_priv_protocol:
        yield from lacking("v3_priv_key", _("privacy key"), _("privacy key is missing"))


def _rebind(olt: Olt, name: str, before: OltAddress) -> bool:
    """Bind a secret to the new address of a name, unless it is unreadable or was for another address."""
    try:
        stored: Secret = Olt.objects.values_list(name, flat=True).get(pk=olt.pk)
    except UndecryptableSecret:
        return False
    if stored.place != str(before):
        return False
    setattr(olt, name, Secret(stored.reveal()))
    return True


def _combination_faults(auth_protocol: str, priv_protocol: str) -> Iterator[Fault]:
    """Name the authentication a privacy protocol requires; unknown protocols are reported elsewhere."""
    partners = [str(auth) for auth, priv in SUPPORTED.items() if priv_protocol in priv]
    if auth_protocol in SUPPORTED and partners and auth_protocol not in partners:
        names = {"priv": priv_protocol, "partners": ", ".join(partners)}
        reason = _("privacy protocol %(priv)s goes only with authentication by %(partners)s") % names
        yield Fault("v3_priv_protocol", reason)
