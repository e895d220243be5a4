"""Engines that are remembered: by device and credential, and only so many."""

from facho.polling.snmp.network import KnownEngines
from facho.polling.snmp.target import AuthProtocol, SnmpVersion, Target, UserCredential
from facho.polling.snmp.user_security import SnmpEngine


def target(address: str = "192.0.2.1", key: bytes = b"passphrase", port: int = 161) -> Target:
    return Target(address, UserCredential("noc", AuthProtocol.SHA, key), SnmpVersion.V3, port)


def test_an_engine_belongs_to_one_device_and_one_credential() -> None:
    engines = KnownEngines()
    engines.remember(target(), SnmpEngine(b"engine"))

    assert engines.find(target()) == SnmpEngine(b"engine")
    assert engines.find(target("192.0.2.2")) is None
    assert engines.find(target(port=1161)) is None
    assert engines.find(target(key=b"another-key")) is None


def test_an_engine_can_be_forgotten() -> None:
    engines = KnownEngines()
    engines.remember(target(), SnmpEngine(b"engine"))

    engines.forget(target())
    engines.forget(target())

    assert engines.find(target()) is None


def test_the_least_used_makes_room() -> None:
    engines = KnownEngines(limit=2)
    for address in ("192.0.2.1", "192.0.2.2"):
        engines.remember(target(address), SnmpEngine(b"engine"))
    engines.find(target("192.0.2.1"))

    engines.remember(target("192.0.2.3"), SnmpEngine(b"engine"))

    assert len(engines) == 2
    assert engines.find(target("192.0.2.1")) is not None
    assert engines.find(target("192.0.2.2")) is None
