"""The rules of OpenID Connect: what a provider is asked, and which of its answers count. Asks nobody itself.

The authorization code flow with PKCE, state and nonce; the library checks signatures, the claims are checked here.
"""

import hashlib
import secrets
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from django.conf import settings
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet

from facho.accounts.sign_on import MOST_GROUPS, Identity

# Signed by a key of the provider; "none" and the ones with a shared secret are not among them.
ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "Ed25519", "EdDSA"]
CLOCK_SKEW_SECONDS = 60
# From the button to the way back; people look for their phone meanwhile.
JOURNEY_SECONDS = 600
# A subject has at most 255 letters by the specification.
LONGEST_SUBJECT = 255
DISCOVERY_PATH = "/.well-known/openid-configuration"


class BadAnswer(Exception):
    """The provider's answer cannot be trusted or understood; the reason is for the log."""


class UnknownKey(BadAnswer):
    """No known key made the signature: keys may have been changed meanwhile."""


@dataclass(frozen=True, slots=True)
class Provider:
    """What its discovery document says."""

    issuer: str
    authorization: str
    token: str
    keys: str
    takes_secret_in_body: bool


@dataclass(frozen=True, slots=True)
class Journey:
    """What a browser carries on its way to the provider and back, sealed."""

    state: str
    nonce: str
    verifier: str
    next: str
    began_at: int

    @classmethod
    def begin(cls, next_path: str, now: datetime) -> "Journey":
        random = secrets.token_urlsafe
        return cls(random(32), random(32), random(48), next_path, int(now.timestamp()))

    def is_over(self, now: datetime) -> bool:
        return not 0 <= int(now.timestamp()) - self.began_at <= JOURNEY_SECONDS


def discovery_url() -> str:
    return settings.FACHO_OIDC_ISSUER.rstrip("/") + DISCOVERY_PATH


def read_provider(document: Any) -> Provider:
    """Read a discovery document; BadAnswer when it is another issuer's, or its addresses are not safe to use."""
    if not isinstance(document, dict) or document.get("issuer") != settings.FACHO_OIDC_ISSUER:
        raise BadAnswer("the discovery document names another issuer")
    methods = document.get("token_endpoint_auth_methods_supported") or ["client_secret_basic"]
    return Provider(
        issuer=settings.FACHO_OIDC_ISSUER,
        authorization=_address(document, "authorization_endpoint"),
        token=_address(document, "token_endpoint"),
        keys=_address(document, "jwks_uri"),
        takes_secret_in_body="client_secret_basic" not in methods and "client_secret_post" in methods,
    )


def _address(document: Mapping[str, Any], name: str) -> str:
    """Return an address of the document; it has TLS wherever it is not the issuer's own."""
    address = document.get(name)
    if not isinstance(address, str):
        raise BadAnswer(f"the discovery document lacks {name}")
    parts, issuer = urlsplit(address), urlsplit(settings.FACHO_OIDC_ISSUER)
    is_same_place = (parts.scheme, parts.netloc) == (issuer.scheme, issuer.netloc)
    if not parts.hostname or (parts.scheme != "https" and not is_same_place):
        raise BadAnswer(f"{name} is without TLS")
    return address


def authorization_url(provider: Provider, journey: Journey, back: str) -> str:
    digest = hashlib.sha256(journey.verifier.encode()).digest()
    question = {
        "response_type": "code",
        "client_id": settings.FACHO_OIDC_CLIENT_ID,
        "redirect_uri": back,
        "scope": " ".join(settings.FACHO_OIDC_SCOPES),
        "state": journey.state,
        "nonce": journey.nonce,
        "code_challenge": urlsafe_b64encode(digest).rstrip(b"=").decode(),
        "code_challenge_method": "S256",
    }
    return f"{provider.authorization}{'&' if '?' in provider.authorization else '?'}{urlencode(question)}"


def token_request(provider: Provider, journey: Journey, code: str, back: str) -> tuple[dict[str, str], bytes]:
    """Return the header and body that change a code for tokens; a client without a secret has PKCE alone."""
    form = {
        "grant_type": "authorization_code",
        "code": code,
        "redirect_uri": back,
        "code_verifier": journey.verifier,
    }
    headers = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
    client, path = settings.FACHO_OIDC_CLIENT_ID, settings.FACHO_OIDC_CLIENT_SECRET_FILE
    secret = path.read_text().strip() if path else ""
    if secret and not provider.takes_secret_in_body:
        pair = f"{quote(client, safe='')}:{quote(secret, safe='')}"
        headers["Authorization"] = f"Basic {b64encode(pair.encode()).decode()}"
    else:
        form["client_id"] = client
        if secret:
            form["client_secret"] = secret
    return headers, urlencode(form).encode()


def read_id_token(answer: Any, keys: Any, nonce: str, now: datetime) -> Identity:
    """Verify signature and claims of the token in an answer; BadAnswer says what is wrong with it."""
    text = answer.get("id_token") if isinstance(answer, dict) else None
    if not isinstance(text, str):
        raise BadAnswer("no id_token in the answer")
    try:
        token = jwt.decode(text, KeySet.import_key_set(keys), algorithms=ALGORITHMS)
    except (JoseError, ValueError, TypeError, KeyError) as error:
        raise UnknownKey(f"the signature does not count: {type(error).__name__}") from error
    claims = token.claims
    _check_claims(claims, nonce, now.timestamp())
    email = claims.get("email")
    is_verified = claims.get("email_verified") is not False
    name = claims.get("preferred_username") or email or claims.get("name") or ""
    return Identity(
        issuer=claims["iss"],
        subject=claims["sub"],
        name=str(name),
        email=email if isinstance(email, str) and is_verified and len(email) <= 254 else "",
        groups=frozenset(_groups(claims)),
    )


def _check_claims(claims: Mapping[str, Any], nonce: str, now: float) -> None:
    audience, subject = claims.get("aud"), claims.get("sub")
    audiences = audience if isinstance(audience, list) else [audience]
    mine = settings.FACHO_OIDC_CLIENT_ID
    wrong = {
        "issuer": claims.get("iss") != settings.FACHO_OIDC_ISSUER,
        "audience": mine not in audiences,
        "authorized party": claims.get("azp", mine if len(audiences) == 1 else None) != mine,
        "subject": not isinstance(subject, str) or not 0 < len(subject) <= LONGEST_SUBJECT,
        "expiry": not _seconds(claims, "exp") > now - CLOCK_SKEW_SECONDS,
        "time of issue": not _seconds(claims, "iat") <= now + CLOCK_SKEW_SECONDS,
        "start": "nbf" in claims and not _seconds(claims, "nbf") <= now + CLOCK_SKEW_SECONDS,
        "nonce": claims.get("nonce") != nonce,
    }
    if found := [name for name, is_wrong in wrong.items() if is_wrong]:
        raise BadAnswer(f"wrong in the token: {', '.join(found)}")


def _seconds(claims: Mapping[str, Any], name: str) -> float:
    """Return a time of the token; a missing or odd one is not a number, which is before and after nothing."""
    value = claims.get(name)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else float("nan")


def _groups(claims: Mapping[str, Any]) -> Iterator[str]:
    """Collect the groups of every claim that counts; `realm_access.roles` means a claim in a claim."""
    for path in settings.FACHO_OIDC_GROUPS_CLAIM:
        if path == "email" and claims.get("email_verified") is not True:
            continue
        value: Any = claims.get(path, claims)
        for part in path.split(".") if path not in claims else ():
            value = value.get(part) if isinstance(value, dict) else None
        values = value if isinstance(value, list) else [value]
        yield from [each for each in values if isinstance(each, str)][:MOST_GROUPS]
