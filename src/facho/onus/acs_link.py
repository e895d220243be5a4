"""The page of an ONU on the provider's ACS, the server that manages ONUs by TR-069: an address made of a template."""

import re
from urllib.parse import quote

from django.conf import settings

from facho.onus.models import Onu
from facho.polling.vendors.decoders import encode_serial

GPON_SERIAL_OCTETS = 8
_PLACE = re.compile(r"\{(\w+)\}")


def acs_url_of(onu: Onu) -> str:
    """Return its address; empty without a template, and when the ONU lacks what the template names."""
    template: str = settings.FACHO_ACS_URL
    values = _values_of(onu) if template else {}
    if not all(values.get(place) for place in _PLACE.findall(template)):
        return ""
    return _PLACE.sub(lambda place: quote(values[place[1]], safe=""), template)


def _values_of(onu: Onu) -> dict[str, str]:
    """Write its identity in each form; a serial with other signs could end a filter that it is put into."""
    serial = onu.serial if onu.serial.isascii() and onu.serial.isalnum() else ""
    octets = encode_serial(serial)
    is_gpon = len(octets) == GPON_SERIAL_OCTETS and octets != serial.encode()
    return {"serial": serial, "serial_hex": octets.hex().upper() if is_gpon else "", "mac": onu.mac}
