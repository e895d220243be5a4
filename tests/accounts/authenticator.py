"""An authenticator in software: makes key pairs, counts and signs, and lies where a test wants it to."""

import json
import secrets
import struct
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from fido2 import cbor
from fido2.cose import ES256

HOST, ORIGIN = "testserver.localhost", "http://testserver.localhost"
USER_PRESENT, USER_VERIFIED, HAS_CREDENTIAL = 1, 4, 64


def text_of(content: bytes) -> str:
    return urlsafe_b64encode(content).rstrip(b"=").decode()


def bytes_of(text: str) -> bytes:
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))


@dataclass
class Authenticator:
    """One passkey; what a browser would put in, as origin and flags, can be set."""

    origin: str = ORIGIN
    host: str = HOST
    flags: int = USER_PRESENT | USER_VERIFIED
    # Of 0 many authenticators are: they do not count.
    counter: int = 0
    is_counting: bool = False
    is_framed: bool = False
    handle: bytes = b""
    credential_id: bytes = field(default_factory=lambda: secrets.token_bytes(32))
    key: ec.EllipticCurvePrivateKey = field(default_factory=lambda: ec.generate_private_key(ec.SECP256R1()))

    def make(self, options: dict[str, Any], **public: Any) -> str:
        """Answer what `navigator.credentials.create` was asked."""
        self.handle = bytes_of(options["user"]["id"])
        public_key = {**ES256.from_cryptography_key(self.key.public_key()), **public.get("changed", {})}
        credential = (
            bytes(16) + struct.pack(">H", len(self.credential_id)) + self.credential_id + cbor.encode(public_key)
        )
        data = self._data(self.flags | HAS_CREDENTIAL) + credential
        attestation = cbor.encode({"fmt": "none", "authData": data, "attStmt": {}})
        client = self._client("webauthn.create", options["challenge"])
        return self._answer(clientDataJSON=client, attestationObject=attestation)

    def use(self, options: dict[str, Any], *, kind: str = "webauthn.get") -> str:
        """Answer what `navigator.credentials.get` was asked."""
        self.counter += self.is_counting
        data, client = self._data(self.flags), self._client(kind, options["challenge"])
        signature = self.key.sign(data + sha256(client).digest(), ec.ECDSA(hashes.SHA256()))
        return self._answer(clientDataJSON=client, authenticatorData=data, signature=signature, userHandle=self.handle)

    def _data(self, flags: int) -> bytes:
        return sha256(self.host.encode()).digest() + struct.pack(">BI", flags, self.counter)

    def _client(self, kind: str, challenge: str) -> bytes:
        message = {"type": kind, "challenge": challenge, "origin": self.origin, "crossOrigin": self.is_framed}
        return json.dumps(message).encode()

    def _answer(self, **response: bytes) -> str:
        name = text_of(self.credential_id)
        shown = {key: text_of(content) for key, content in response.items() if content}
        return json.dumps({"id": name, "rawId": name, "type": "public-key", "response": shown})
