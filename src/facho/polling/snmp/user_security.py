"""Keys of v3 users, and the checks that every answer to them passes before anything in it is believed.

gufo-snmp makes the keys. It is not asked to read answers: it neither verifies their digest nor tells their error
status and types.
"""

import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from cryptography.hazmat.decrepit.ciphers.algorithms import TripleDES
from cryptography.hazmat.decrepit.ciphers.modes import CFB
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import CBC
from gufo.snmp.user import BaseAuthKey, Md5Key, Sha1Key, Sha224Key, Sha256Key, Sha384Key, Sha512Key

from facho.polling.snmp.ber import Pdu, PduKind, decode_pdu
from facho.polling.snmp.ber_values import Tag, enter
from facho.polling.snmp.envelope import Envelope
from facho.polling.snmp.errors import ForgedAnswer, MalformedMessage, UnexpectedAnswer
from facho.polling.snmp.target import AuthProtocol, PrivProtocol, UserCredential

_SEQUENCE = 0x30
_SALT_BYTES = 8
_DES_BLOCK_BYTES = 8
# AES needs no whole blocks, yet the library and some agents fill the last one.
_AES_BLOCK_BYTES = 16


class Signature(NamedTuple):
    """The hash behind an authentication protocol, and how much of its digest travels."""

    hash_name: str
    digest_bytes: int
    key: type[BaseAuthKey]


SIGNATURES: Mapping[AuthProtocol, Signature] = {
    AuthProtocol.MD5: Signature("md5", 12, Md5Key),
    AuthProtocol.SHA: Signature("sha1", 12, Sha1Key),
    AuthProtocol.SHA_224: Signature("sha224", 16, Sha224Key),
    AuthProtocol.SHA_256: Signature("sha256", 24, Sha256Key),
    AuthProtocol.SHA_384: Signature("sha384", 32, Sha384Key),
    AuthProtocol.SHA_512: Signature("sha512", 48, Sha512Key),
}
_AES_KEY_BYTES = {PrivProtocol.AES: 16, PrivProtocol.AES_192: 24, PrivProtocol.AES_256: 32}


@dataclass(frozen=True, slots=True)
class Engine:
    """An agent's SNMP engine and the keys that a user has there and nowhere else."""

    engine_id: bytes
    auth_key: bytes = field(default=b"", repr=False)
    priv_key: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True)
class Opened:
    """A message whose digest held, if it has one, and whose content could be read."""

    envelope: Envelope
    pdu: Pdu

    @property
    def is_report(self) -> bool:
        """Tell whether the agent speaks about our message instead of answering it."""
        return self.pdu.kind is PduKind.REPORT


def make_engine(credential: UserCredential, engine_id: bytes) -> Engine:
    """Derive a user's keys for an engine: milliseconds of hashing, so keep the result."""
    protocol = credential.auth_protocol
    if protocol is None:
        return Engine(engine_id)
    priv_key = _localized(protocol, credential.priv_key, engine_id) if credential.priv_protocol else b""
    return Engine(engine_id, _localized(protocol, credential.auth_key, engine_id), priv_key)


def open_answer(envelope: Envelope, credential: UserCredential, engine: Engine) -> Opened:
    """Verify, decrypt and decode an answer.

    ForgedAnswer unless it is as well protected as the question was; a report that says why the question was not
    taken may come unprotected, since an agent that does not know us has no key to sign with.
    """
    if envelope.is_authenticated:
        _verify(envelope, credential, engine)
    opened = Opened(envelope, read_content(envelope, credential, engine))
    if opened.is_report:
        return opened
    asked = (credential.auth_protocol is not None, credential.priv_protocol is not None)
    if (envelope.is_authenticated, envelope.is_encrypted) != asked:
        raise ForgedAnswer("an answer less protected than the question")
    if opened.pdu.kind is not PduKind.RESPONSE:
        raise UnexpectedAnswer("neither a response nor a report")
    return opened


def open_report(envelope: Envelope) -> Opened:
    """Decode the report by which an agent that was asked by nobody tells who it is."""
    if envelope.is_authenticated or not envelope.engine_id:
        raise UnexpectedAnswer("not a report of an engine's id")
    opened = Opened(envelope, _decode_scoped(envelope.body, padding_bytes=0))
    if not opened.is_report:
        raise UnexpectedAnswer("not a report of an engine's id")
    return opened


def read_content(envelope: Envelope, credential: UserCredential, engine: Engine) -> Pdu:
    """Decrypt and decode, without a look at the digest."""
    if not envelope.is_encrypted:
        return _decode_scoped(envelope.body, padding_bytes=0)
    if credential.priv_protocol is None:
        raise ForgedAnswer("an encrypted answer to a user without privacy")
    block_bytes = _DES_BLOCK_BYTES if credential.priv_protocol is PrivProtocol.DES else _AES_BLOCK_BYTES
    decryptor = _cipher(envelope, credential.priv_protocol, engine.priv_key).decryptor()
    content = decryptor.update(envelope.body) + decryptor.finalize()
    return _decode_scoped(content, padding_bytes=block_bytes - 1)


def _localized(protocol: AuthProtocol, passphrase: bytes, engine_id: bytes) -> bytes:
    key = SIGNATURES[protocol].key
    return key.get_localized_key(key.get_master_key(passphrase), engine_id)


def _verify(envelope: Envelope, credential: UserCredential, engine: Engine) -> None:
    if credential.auth_protocol is None:
        raise ForgedAnswer("a signed answer to a user without a key")
    if envelope.engine_id != engine.engine_id or envelope.user != credential.user.encode():
        raise ForgedAnswer("an answer of another engine or to another user")
    signature = SIGNATURES[credential.auth_protocol]
    digest = hmac.digest(engine.auth_key, envelope.unsigned, signature.hash_name)[: signature.digest_bytes]
    if not hmac.compare_digest(digest, envelope.digest):
        raise ForgedAnswer("an answer with a wrong digest")


def _cipher(envelope: Envelope, protocol: PrivProtocol, key: bytes) -> Cipher[CBC] | Cipher[CFB]:
    if len(envelope.salt) != _SALT_BYTES:
        raise MalformedMessage("privacy parameters are not 8 bytes")
    if protocol is PrivProtocol.DES:
        if len(envelope.body) % _DES_BLOCK_BYTES:
            raise MalformedMessage("encrypted content is not whole blocks")
        vector = bytes(a ^ b for a, b in zip(key[8:16], envelope.salt, strict=True))
        # Three times the same key is plain DES, which the library has no name for.
        return Cipher(TripleDES(key[:8] * 3), CBC(vector))
    clock = envelope.engine_boots.to_bytes(4, "big") + envelope.engine_time.to_bytes(4, "big")
    return Cipher(AES(key[: _AES_KEY_BYTES[protocol]]), CFB(clock + envelope.salt))


def _decode_scoped(data: bytes, *, padding_bytes: int) -> Pdu:
    try:
        pos, end = enter(data, 0, len(data), _SEQUENCE)
        if len(data) - end > padding_bytes:
            raise MalformedMessage("bytes after the end of the content")
        _, pos = enter(data, pos, end, Tag.OCTET_STRING)
        _, pos = enter(data, pos, end, Tag.OCTET_STRING)
        return decode_pdu(data, pos, end)
    except IndexError as error:
        raise MalformedMessage("content ends in the middle of a field") from error
