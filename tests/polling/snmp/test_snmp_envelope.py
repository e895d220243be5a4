"""The outside of v3 messages: read exactly, or refused in words."""

import pytest
from snmp_v3_agent import encode_sealed, octets, report

from facho.polling.snmp.ber_values import encode_integer, wrap
from facho.polling.snmp.errors import MalformedMessage
from facho.polling.snmp.user_security import Envelope, decode_envelope

SEQUENCE = 0x30
# An agent's answer to a discovery, as net-snmp sends it.
REPORT = bytes.fromhex(
    "30710201033011020407e5fad0020300ffe30401000201030421301f041180001f888090f1d56486a4f96a000000000201010201150400"
    "040004003036041180001f888090f1d56486a4f96a000000000400a81f02044180f3e70201000201003011300f060a2b060106030f0101"
    "0400410104"
)


def message(
    *,
    version: int = 3,
    flags: bytes = b"\x00",
    model: int = 3,
    security: bytes | None = None,
    body: bytes = b"\x30\x00",
) -> bytes:
    header = wrap(SEQUENCE, encode_integer(1) + encode_integer(2048) + octets(flags) + encode_integer(model))
    security = parameters() if security is None else security
    return wrap(SEQUENCE, encode_integer(version) + header + octets(security) + body)


def parameters(*, engine_id: bytes = b"engine", boots: int = 1, user: bytes = b"noc", more: bytes = b"") -> bytes:
    fields = octets(engine_id) + encode_integer(boots) + encode_integer(7) + octets(user) + octets(b"") + octets(b"")
    return wrap(SEQUENCE, fields + more)


def test_a_report_of_net_snmp_is_taken_apart() -> None:
    envelope = decode_envelope(REPORT)

    assert envelope.engine_id.hex() == "80001f888090f1d56486a4f96a00000000"
    assert (envelope.message_id, envelope.engine_boots, envelope.engine_time) == (0x07E5FAD0, 1, 21)
    assert (envelope.is_authenticated, envelope.is_encrypted, envelope.user) == (False, False, b"")


def test_the_digest_is_taken_out_of_what_it_signs() -> None:
    envelope = Envelope(1, True, False, b"", 0, 0, b"", 3, b"1234", b"", b"", b"abc1234xyz")

    assert envelope.unsigned == b"abc\0\0\0\0xyz"


def test_an_answer_has_the_id_of_its_question() -> None:
    question = decode_envelope(REPORT)

    answer = decode_envelope(encode_sealed(question, b"engine", report(4)))

    assert (answer.message_id, answer.engine_id) == (question.message_id, b"engine")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x30",
        message() + b"\x00",
        message(version=1),
        message(flags=b""),
        message(flags=b"\x00\x00"),
        message(flags=b"\x02", body=octets(b"x")),
        message(flags=b"\x03"),
        message(flags=b"\x03", body=octets(b"x") + b"\x00"),
        message(model=1),
        message(security=b""),
        message(security=parameters(engine_id=b"x" * 33)),
        message(security=parameters(user=b"x" * 33)),
        message(security=parameters(boots=-1)),
        message(security=parameters(more=b"\x05\x00")),
        message(security=parameters() + b"\x00"),
    ],
)
def test_what_is_not_exactly_one_message_is_refused(data: bytes) -> None:
    with pytest.raises(MalformedMessage):
        decode_envelope(data)


def test_every_cut_of_a_message_is_refused() -> None:
    for size in range(len(REPORT)):
        with pytest.raises(MalformedMessage):
            decode_envelope(REPORT[:size])
