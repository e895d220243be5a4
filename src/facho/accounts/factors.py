"""Second factors of local accounts: codes of an authenticator app (RFC 6238), and recovery codes, each good once."""

import hmac
import secrets
from base64 import b32decode, b32encode
from datetime import datetime
from urllib.parse import quote

from django.contrib.auth.models import User
from django.utils.crypto import salted_hmac

from facho.accounts.models import Passkey, RecoveryCode, SecondFactor, SecondFactorDuty
from facho.accounts.roles import role_of
from facho.accounts.throttle import Guess, Tries
from facho.infrastructure.secrets import Secret

KEY_BYTES = 20
STEP_SECONDS = 30
# Clocks of phones are a little off; each more is another code that would be right.
STEPS_OFF = 1
DIGITS = 6
RECOVERY_CODES = 10
# Fifty bits: nobody guesses one, so its digest needs no slow hash.
RECOVERY_LETTERS = 10
_LETTERS = "abcdefghijkmnpqrstuvwxyz23456789"


def code_at(key: str, step: int) -> str:
    """Return the code of a step, as RFC 4226 truncates it."""
    digest = hmac.digest(b32decode(key), step.to_bytes(8, "big"), "sha1")
    offset = digest[-1] & 15
    number = int.from_bytes(digest[offset : offset + 4], "big") & 0x7FFFFFFF
    return f"{number % 10**DIGITS:0{DIGITS}}"


def has_app(user: User) -> bool:
    return SecondFactor.objects.filter(user=user, confirmed_at__isnull=False).exists()


def has_factor(user: User) -> bool:
    """Return whether the password alone is not enough: there is an authenticator app, or a passkey."""
    return has_app(user) or Passkey.objects.filter(user=user).exists()


def must_have_factor(user: User) -> bool:
    """Return whether the role asks for one; people of a sign-on have theirs at the provider."""
    role = role_of(user)
    return role is not None and user.has_usable_password() and SecondFactorDuty.objects.filter(role=role).exists()


def begin(user: User) -> SecondFactor:
    """Return the factor that is not confirmed yet, with a key of its own, made when there is none."""
    factor = SecondFactor.objects.filter(user=user).first()
    if factor is None:
        key = b32encode(secrets.token_bytes(KEY_BYTES)).decode()
        factor, _is_new = SecondFactor.objects.get_or_create(user=user, defaults={"key": Secret(key)})
    return factor


def address_for_app(user: User, factor: SecondFactor) -> str:
    """Return what the QR code holds, in the form that authenticator apps read."""
    label = quote(f"Facho:{user.get_username()}", safe=":")
    return f"otpauth://totp/{label}?secret={factor.key.reveal()}&issuer=Facho&digits={DIGITS}&period={STEP_SECONDS}"


def confirm(factor: SecondFactor, code: str, now: datetime) -> list[str] | None:
    """Switch the factor on with its first code; return new recovery codes, or None when the code is wrong."""
    if not _accept(factor, code, now):
        return None
    SecondFactor.objects.filter(pk=factor.pk, confirmed_at=None).update(confirmed_at=now)
    return renew_recovery_codes(factor.user)


def check(user: User, code: str, now: datetime) -> bool:
    """Accept a code of the app or a recovery code, once."""
    plain = _plain(code)
    if is_recovery_code(code):
        return bool(RecoveryCode.objects.filter(user=user, digest=_digest(user, plain)).delete()[0])
    factor = SecondFactor.objects.filter(user=user, confirmed_at__isnull=False).first()
    return factor is not None and _accept(factor, plain, now)


def is_recovery_code(code: str) -> bool:
    return len(_plain(code)) == RECOVERY_LETTERS


def renew_recovery_codes(user: User) -> list[str]:
    """Replace all recovery codes; the text is returned this one time."""
    codes = ["".join(secrets.choice(_LETTERS) for _ in range(RECOVERY_LETTERS)) for _ in range(RECOVERY_CODES)]
    RecoveryCode.objects.filter(user=user).delete()
    RecoveryCode.objects.bulk_create(RecoveryCode(user=user, digest=_digest(user, code)) for code in codes)
    return [f"{code[:5]}-{code[5:]}" for code in codes]


def reset(user: User) -> bool:
    """Remove app, passkeys and recovery codes; returns whether there was one."""
    RecoveryCode.objects.filter(user=user).delete()
    apps = SecondFactor.objects.filter(user=user).delete()[0]
    return bool(apps + Passkey.objects.filter(user=user).delete()[0])


def remove(factor: SecondFactor | Passkey) -> None:
    """Remove one factor; removing the last one deletes the recovery codes, too."""
    user = factor.user
    factor.delete()
    if not has_factor(user):
        RecoveryCode.objects.filter(user=user).delete()


def is_last_duty(user: User) -> bool:
    """Return whether the role forbids removing a factor, since no other would be left."""
    left = Passkey.objects.filter(user=user).count() + has_app(user)
    return left <= 1 and must_have_factor(user)


def codes_for_first(user: User) -> list[str] | None:
    """Make recovery codes for somebody who has none yet."""
    return None if RecoveryCode.objects.filter(user=user).exists() else renew_recovery_codes(user)


def tries_of(user: User) -> Tries:
    """Count wrong codes of an account, from wherever they come."""
    return Tries(Guess.CODE_OF_ACCOUNT, "anywhere", str(user.pk))


def load_duties() -> list[str]:
    return list(SecondFactorDuty.objects.values_list("role", flat=True))


def _accept(factor: SecondFactor, code: str, now: datetime) -> bool:
    """Accept a code of a step after the last accepted one; of two at once the second changes no row."""
    current = int(now.timestamp()) // STEP_SECONDS
    key = factor.key.reveal()
    for step in range(current - STEPS_OFF, current + STEPS_OFF + 1):
        if hmac.compare_digest(code_at(key, step).encode(), code.encode(errors="replace")):
            unused = SecondFactor.objects.filter(pk=factor.pk, last_step__lt=step)
            return bool(unused.update(last_step=step))
    return False


def _plain(code: str) -> str:
    return "".join(code.split()).replace("-", "").lower()[:40]


def _digest(user: User, code: str) -> str:
    return salted_hmac("facho.accounts.factors", f"{user.pk}\n{code}").hexdigest()
