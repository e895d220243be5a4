"""Tells from which address of this machine questions to a device leave; no packet is sent to find out."""

import socket

from facho.polling.snmp.target import Target


def own_address(target: Target) -> str:
    """Return the address that the device sees; empty when the system knows no way to it."""
    if target.source_address:
        return target.source_address
    family = socket.AF_INET6 if target.is_ipv6 else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as udp:
        try:
            # Connecting a datagram socket only asks the routing table.
            udp.connect((target.address, target.port))
        except OSError:
            return ""
        return str(udp.getsockname()[0])
