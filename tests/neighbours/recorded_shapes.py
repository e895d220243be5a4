"""Answers of SmartOLT's API as its published collection and public clients show them, with values of our own.

The collection is api.smartolt.com; docs/decisions/0109 says what was done where clients disagree with it.

Of each key: what its value may be. What we answer must have every key here, with a value of one of these types.
"""

from typing import Any

# Lists are written as one row.
GET_OLTS = {
    "id": "2",
    "name": "CENTRO",
    "olt_hardware_version": "Huawei-MA5608T",
    "ip": "192.0.2.8",
    "telnet_port": "2333",
    "snmp_port": "2161",
}
GET_UPTIMES = {"olt_id": "2", "olt_name": "CENTRO", "uptime": "7 days, 19:28", "env_temp": "43°C"}
GET_ZONES = {"id": "1", "name": "Zone 1", "imported_date": None, "imported_from_olt": None}
GET_ODBS = {"id": "4", "name": "CTO 56", "nr_of_ports": "8", "latitude": "4.61", "longitude": "-74.01", "zone_id": "1"}
GET_PON_PORTS: dict[str, Any] = {
    "board": "0",
    "pon_port": "0",
    "pon_type": "GPON",
    "admin_status": "Enabled",
    "operational_status": "Up",
    "description": "",
    "min_range": "0",
    "max_range": "20000",
    "tx_power": "7.73",
    "onus_count": 25,
    "online_onus_count": 24,
    "average_signal": -28.7,
}
GET_OUTAGE_PONS = {
    "olt_id": "3",
    "olt_name": "NORTE",
    "board": "1",
    "port": "3",
    "pon_description": "",
    "total_onus": "103",
    "cause": "LOS",
    "los_count": "8",
    "power_count": "4",
    "latest_status_change": "2026-10-02 16:22:51",
}
UNCONFIGURED = {
    "pon_type": "gpon",
    "board": "1",
    "port": "3",
    "onu": "",
    "sn": "HWTC0000000A",
    "onu_type_name": "EG8145V5",
    "onu_type_id": "12",
    "olt_id": "2",
    "possible_actions": ["authorize"],
}
GET_STATUSES = {
    "unique_external_id": "TPLG0000000A",
    "sn": "TPLG0000000A",
    "olt_id": "2",
    "board": "1",
    "port": "0",
    "onu": "2",
    "zone_id": "1",
    "name": "CLIENTE 1",
    "address": "",
    "contact": "",
    "odb_id": None,
    "status": "Online",
    "last_status_change": "2026-07-08 11:36:33",
}
GET_SIGNALS = {
    "unique_external_id": "TPLG0000000A",
    "signal_1310": "-30.46 dBm",
    "signal": "Warning",
    "signal_1490": "-24.95 dBm",
}
GET_ADMIN_STATUSES = {"sn": "TPLG0000000A", "admin_status": "Enabled"}
GET_GPS = {"unique_external_id": "TPLG0000000A", "latitude": "4.61", "longitude": "-74.01"}
DETAILS: dict[str, Any] = {
    "unique_external_id": "TPLG0000000A",
    "pon_type": "gpon",
    "gpon_channel": "gpon",
    "sn": "TPLG0000000A",
    "olt_id": "2",
    "olt_name": "CENTRO",
    "board": "1",
    "port": "0",
    "onu": "2",
    "onu_type_id": "12",
    "onu_type_name": "EG8145V5",
    "zone_id": "1",
    "zone_name": "Zone 1",
    "name": "CLIENTE 1",
    "address": "Calle 1",
    "odb_name": "CTO 56",
    "odb_port": "3",
    "mode": "Routing",
    "wan_mode": "PPPoE",
    "vlan": "100",
    "ip_address": "192.0.2.77",
    "subnet_mask": "255.255.255.0",
    "default_gateway": "192.0.2.1",
    "dns1": "192.0.2.2",
    "dns2": "192.0.2.3",
    "username": "cliente1",
    "password": "x",
    "mgmt_ip_mode": "Inactive",
    "mgmt_ip_address": "192.0.2.78",
    "custom_template_name": "",
    "tr069": "Disabled",
    "catv": "Not supported",
    "administrative_status": "Enabled",
    "authorization_date": "2026-05-01 10:00:00",
    "status": "Online",
    "last_status_change": "2026-07-08 11:36:33",
    "signal": "Very good",
    "signal_1310": "-23.98",
    "signal_1490": "-21.74",
    "latitude": "4.61",
    "longitude": "-74.01",
    "contact": "555",
    "service_ports": [],
    "ethernet_ports": [],
    "wifi_ports": [],
    "voip_ports": [],
}
ONE_DETAILS = {**DETAILS, "distance": "1447"}
ONE_STATUS = {"onu_status": "Online", "last_status_change": "2026-07-08 11:36:33"}
ONE_SIGNAL = {
    "onu_signal": "Warning",
    "onu_signal_value": "-24.95 dBm / -30.46 dBm (1447m)",
    "onu_signal_1310": "-30.46 dBm",
    "onu_signal_1490": "-24.95 dBm",
}
ONE_ADMIN_STATUS = {"administrative_status": "Enabled"}

STATUSES = {"Online", "Power fail", "LOS", "Offline"}
SIGNALS = {"Very good", "Warning", "Critical", "-"}


def misfits(answered: dict[str, Any], recorded: dict[str, Any]) -> list[str]:
    """Name the keys that are missing or have a value of another type; null stands for what is not known."""
    return [
        name
        for name, sample in recorded.items()
        if name not in answered
        or not (answered[name] is None or sample is None or isinstance(answered[name], type(sample)))
    ]
