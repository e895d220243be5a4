"""How many notifications a second one core judges: `python -m bench.notifications`. No socket, no database."""

import time
from collections.abc import Sequence

from facho.polling.snmp import pages, python_pages
from facho.polling.snmp.ber import Tag, VarBind
from facho.polling.snmp.notifications import Notification, NotificationEar, encode_notification
from facho.polling.snmp.target import AuthProtocol, Community, Credential, PrivProtocol, SnmpVersion, UserCredential

TRAPS = 20_000
ONUS = 1_000
ENTERPRISE = (1, 3, 6, 1, 4, 1, 99_999)
ENGINE_ID = b"\x80\x00\x1f\x88\x04facho"
PUBLIC = Community(b"public")
SIGNED = UserCredential("noc", AuthProtocol.SHA_256, b"s3cr3t-auth-key")
SECRET = UserCredential("noc", AuthProtocol.SHA_256, b"s3cr3t-auth-key", PrivProtocol.AES, b"s3cr3t-priv-key")


def main() -> None:
    v2c = [encode_notification(loss_of_signal(onu), PUBLIC, request_id=onu + 1) for onu in range(ONUS)]
    v1 = [encode_notification(loss_of_signal(onu, SnmpVersion.V1), PUBLIC) for onu in range(ONUS)]
    inform = [encode_notification(loss_of_signal(onu, is_inform=True), PUBLIC) for onu in range(ONUS)]
    measure("v2c traps", v2c, [PUBLIC])
    measure("v2c traps, another community", v2c, [Community(b"private")])
    measure("v2c traps, cut", [data[:-1] for data in v2c], [PUBLIC])
    measure("v2c informs, with their answers", inform, [PUBLIC])
    measure("v1 traps", v1, [PUBLIC])
    for name, user in (("signed", SIGNED), ("encrypted", SECRET)):
        v3 = [encode_notification(loss_of_signal(onu, SnmpVersion.V3), user, clock=(1, 1)) for onu in range(ONUS)]
        measure(f"v3 traps, {name}, most of them repeated", v3, [user])
    pages.decoder = python_pages
    measure("v2c traps, decoder in Python", v2c, [PUBLIC])


def loss_of_signal(onu: int, version: SnmpVersion = SnmpVersion.V2C, *, is_inform: bool = False) -> Notification:
    """Make a trap with the varbinds that a large vendor's have: five numbers and a text."""
    places: list[VarBind] = [((*ENTERPRISE, 6, 3, part, 4_194_313_728, onu), Tag.INTEGER, onu) for part in range(5)]
    name: VarBind = ((*ENTERPRISE, 2, 45, 1, 4, 4_194_313_728, onu), Tag.OCTET_STRING, b"HG8546M")
    engine_id = ENGINE_ID + b"-olt" if version is SnmpVersion.V3 else b""
    return Notification(version, (*ENTERPRISE, 0, 18), (*places, name), 123_456, is_inform, engine_id=engine_id)


def measure(name: str, datagrams: Sequence[bytes], credentials: Sequence[Credential]) -> None:
    """Hear every datagram several times, and print the rate by CPU time."""
    ear = NotificationEar(engine_id=ENGINE_ID, engine_boots=1, monotonic=time.monotonic)
    started = time.process_time()
    for _ in range(TRAPS // len(datagrams)):
        for data in datagrams:
            ear.hear(data, credentials)
    seconds = time.process_time() - started
    print(f"{name}: {TRAPS / seconds:,.0f}/s ({len(datagrams[0])} bytes, {seconds / TRAPS * 1e6:.1f} µs)")


if __name__ == "__main__":
    main()
