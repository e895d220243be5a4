"""Passkeys of local accounts (WebAuthn): what an authenticator is asked, and which of its answers count.

The library checks challenge, origin, flags and signature; whose answer it is, and that it counts once, is decided here.
A question is carried by the browser, sealed, so that strangers leave no rows.
"""

import json
import logging
import struct
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from hashlib import sha256
from ipaddress import ip_address
from typing import Any, TypeVar
from urllib.parse import urlsplit

from cryptography.exceptions import UnsupportedAlgorithm
from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from fido2.server import Fido2Server
from fido2.webauthn import (
    AttestationConveyancePreference,
    AttestedCredentialData,
    AuthenticationResponse,
    PublicKeyCredentialRpEntity,
    PublicKeyCredentialUserEntity,
    RegistrationResponse,
    ResidentKeyRequirement,
    UserVerificationRequirement,
)

from facho.accounts.models import Passkey
from facho.accounts.throttle import address_of
from facho.infrastructure.secrets import Secret, UndecryptableSecret, decrypt, encrypt

logger = logging.getLogger(__name__)

COOKIE = "facho_passkey"
# From the question to the answer; people look for their key meanwhile.
QUESTION_FOR = timedelta(minutes=5)
MOST_PASSKEYS = 10
MOST_ANSWER_LETTERS = 16_000
# Of the specification.
LONGEST_CREDENTIAL_ID = 1023
# What the library raises for answers that are none; it promises no type of its own.
_NO_ANSWER = (
    *(ValueError, LookupError, TypeError, AttributeError, ArithmeticError, AssertionError),
    *(NotImplementedError, RecursionError, struct.error, UnsupportedAlgorithm),
)
Read = TypeVar("Read")


class PasskeyRefused(Exception):
    """An answer does not count; the reason is for the log."""


@dataclass(frozen=True, slots=True)
class PasskeyHost:
    """The host that people use, which passkeys belong to, and the origin that a browser then names."""

    host: str
    origin: str

    @classmethod
    def of(cls, request: HttpRequest) -> "PasskeyHost | None":
        """Read the host, which was checked against FACHO_ALLOWED_HOSTS; None where browsers know no passkeys."""
        host = urlsplit(f"//{request.get_host()}").hostname or ""
        is_near = host == "localhost" or host.endswith(".localhost")
        if _is_address(host) or not (request.is_secure() or is_near):
            return None
        return cls(host, f"{request.scheme}://{request.get_host()}".lower())


@dataclass(frozen=True, slots=True)
class PasskeyQuestion:
    """What a browser carries until its authenticator has answered: to make a passkey of a name, or to use one."""

    challenge: str
    asked_at: str
    # Whose passkey it has to be; 0 when nobody is known yet.
    user_id: int = 0
    name: str = ""

    def seal(self) -> str:
        return encrypt(Secret(json.dumps(asdict(self))))

    @property
    def at(self) -> datetime:
        return datetime.fromisoformat(self.asked_at)


def load_question(request: HttpRequest, now: datetime) -> tuple[PasskeyQuestion, PasskeyHost]:
    """Open what a browser carried; PasskeyRefused when it is not ours, or too old."""
    place = PasskeyHost.of(request)
    if place is None:
        raise PasskeyRefused("there are no passkeys at this address")
    try:
        question = PasskeyQuestion(**json.loads(decrypt(request.COOKIES.get(COOKIE, "")).reveal()))
    except (UndecryptableSecret, ValueError, TypeError) as error:
        raise PasskeyRefused("it was not asked for here") from error
    if not timedelta(0) <= now - question.at <= QUESTION_FOR:
        raise PasskeyRefused("the question is too old")
    return question, place


def ask_to_make(user: User, name: str, place: PasskeyHost, now: datetime) -> tuple[dict[str, Any], PasskeyQuestion]:
    """Return what the browser is asked, to make a passkey that no other of this person's is."""
    whose = PublicKeyCredentialUserEntity(
        id=_handle(user), name=user.get_username(), display_name=user.get_full_name() or user.get_username()
    )
    options, state = _server(place).register_begin(
        whose,
        [AttestedCredentialData(bytes(row.credential)) for row in user.passkeys.filter(host=place.host)],
        # Without a user name to log in by, where the key has room for that.
        resident_key_requirement=ResidentKeyRequirement.PREFERRED,
        user_verification=UserVerificationRequirement.REQUIRED,
    )
    return dict(options.public_key), PasskeyQuestion(state["challenge"], now.isoformat(), user.pk, name)


def make(user: User, question: PasskeyQuestion, place: PasskeyHost, answer: str) -> Passkey:
    """Keep the new passkey that answers a question; of one question comes one passkey."""
    if question.user_id != user.pk or not question.name:
        raise PasskeyRefused("somebody else was asked")
    server = _server(place)
    read = _read(lambda: RegistrationResponse.from_dict(_parsed(answer)))
    if read.response.client_data.cross_origin:
        raise PasskeyRefused("it was made inside of another page")
    made = _read(lambda: server.register_complete(_state(question), read))
    credential = made.credential_data
    if credential is None or len(credential.credential_id) > LONGEST_CREDENTIAL_ID:
        raise PasskeyRefused("it holds no credential")
    if credential.public_key.get(3) not in {each.alg for each in server.allowed_algorithms}:
        raise PasskeyRefused("its kind of key was not asked for")
    if user.passkeys.count() >= MOST_PASSKEYS:
        raise PasskeyRefused("there are too many")
    try:
        with transaction.atomic():
            return Passkey.objects.create(
                user=user,
                name=question.name,
                host=place.host,
                digest=_digest(credential.credential_id),
                credential=bytes(credential),
                counter=made.counter,
                created_at=question.at,
            )
    except IntegrityError as error:
        raise PasskeyRefused("it is known, or the question was answered before") from error


def ask_to_use(user: User | None, place: PasskeyHost, now: datetime) -> tuple[dict[str, Any], PasskeyQuestion]:
    """Return what the browser is asked, to use a passkey of this person, or of anybody."""
    rows = user.passkeys.filter(host=place.host) if user else Passkey.objects.none()
    options, state = _server(place).authenticate_begin(
        [AttestedCredentialData(bytes(row.credential)) for row in rows],
        user_verification=UserVerificationRequirement.REQUIRED,
    )
    return dict(options.public_key), PasskeyQuestion(state["challenge"], now.isoformat(), user.pk if user else 0)


def use(question: PasskeyQuestion, place: PasskeyHost, answer: str, now: datetime) -> Passkey:
    """Return the passkey that answered; an answer counts once, and none with a counter that went back."""
    read = _read(lambda: AuthenticationResponse.from_dict(_parsed(answer)))
    row = Passkey.objects.select_related("user").filter(digest=_digest(read.raw_id), host=place.host).first()
    if row is None:
        raise PasskeyRefused("the passkey is unknown")
    handle = read.response.user_handle
    if (question.user_id and question.user_id != row.user_id) or question.name:
        raise PasskeyRefused("somebody else was asked")
    if handle != _handle(row.user) and (handle or not question.user_id):
        raise PasskeyRefused("it names another account")
    if not row.user.is_active or not row.user.has_usable_password():
        raise PasskeyRefused("the account is closed")
    if read.response.client_data.cross_origin:
        raise PasskeyRefused("it was used inside of another page")
    credential = AttestedCredentialData(bytes(row.credential))
    _read(lambda: _server(place).authenticate_complete(_state(question), [credential], read))
    counter = read.response.authenticator_data.counter
    # Many authenticators count nothing, and say 0 each time. A use that is ahead is of a clock that was set back.
    grown = Q(counter__lt=counter) if counter else Q(counter=0)
    unused = Q(used_at=None) | Q(used_at__lt=question.at) | Q(used_at__gt=now)
    if not Passkey.objects.filter(grown, unused, pk=row.pk).update(counter=counter, used_at=question.at):
        why = "it counted before" if counter > row.counter or not counter else "its counter went back: a copy?"
        raise PasskeyRefused(why)
    return row


def carry(answer: HttpResponse, question: PasskeyQuestion) -> None:
    """Give the browser the question to keep; it comes back with what its authenticator says."""
    age = int(QUESTION_FOR.total_seconds())
    answer.set_cookie(COOKIE, question.seal(), max_age=age, httponly=True, samesite="Strict")


def answered(request: HttpRequest, answer: str, now: datetime, *, by: User | None = None) -> Passkey | None:
    """Return the passkey that answered the question of this browser, of this person where one is named."""
    try:
        question, place = load_question(request, now)
        return use(question if by is None else replace(question, user_id=by.pk), place, answer, now)
    except PasskeyRefused as error:
        log_refusal(request, error)
        return None


def log_refusal(request: HttpRequest, error: PasskeyRefused) -> None:
    logger.warning("passkey.refused address=%s reason=%s", address_of(request), error)


def _server(place: PasskeyHost) -> Fido2Server:
    return Fido2Server(
        PublicKeyCredentialRpEntity(id=place.host, name="Facho"),
        attestation=AttestationConveyancePreference.NONE,
        verify_origin=lambda origin: origin == place.origin,
    )


def _state(question: PasskeyQuestion) -> dict[str, Any]:
    return {"challenge": question.challenge, "user_verification": UserVerificationRequirement.REQUIRED}


def _parsed(answer: str) -> dict[str, Any]:
    if len(answer) > MOST_ANSWER_LETTERS:
        raise ValueError("it is too long")
    parsed = json.loads(answer)
    if not isinstance(parsed, dict):
        # The library reads nothing from nothing, without an error.
        raise TypeError("it is no object")
    return parsed


def _read(reader: Callable[[], Read]) -> Read:
    try:
        return reader()
    except _NO_ANSWER as error:
        # Its text may hold what a stranger sent.
        raise PasskeyRefused(f"{type(error).__name__}: {str(error)[:100]!r}") from error


def _handle(user: User) -> bytes:
    """Name an account to authenticators: by its number, since they show it to others."""
    return user.pk.to_bytes(8, "big")


def _digest(credential_id: bytes) -> str:
    return sha256(credential_id).hexdigest()


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
