"""Error statuses of a response as exceptions of ours."""

from collections.abc import Sequence

from facho.polling.snmp.ber import Oid, Pdu, VarBind
from facho.polling.snmp.errors import AccessDenied, AgentError, MissingObject, TooBig
from facho.polling.snmp.oid import format_oid

_NAMES = {
    1: "tooBig",
    2: "noSuchName",
    3: "badValue",
    4: "readOnly",
    5: "genErr",
    6: "noAccess",
    13: "resourceUnavailable",
    16: "authorizationError",
}
_ERRORS: dict[int, type[AgentError]] = {1: TooBig, 2: MissingObject, 6: AccessDenied, 16: AccessDenied}


def checked_varbinds(pdu: Pdu, oids: Sequence[Oid], address: str) -> list[VarBind]:
    """Return the varbinds of a response to a question for `oids`; raise what its error status means."""
    if not pdu.error_status:
        return list(pdu.varbinds)
    index = pdu.error_index if 0 < pdu.error_index <= len(oids) else 0
    name = _NAMES.get(pdu.error_status, f"error status {pdu.error_status}")
    where = f" at {format_oid(oids[index - 1])}" if index else ""
    error = _ERRORS.get(pdu.error_status, AgentError)
    raise error(f"{address} answered {name}{where}", status=pdu.error_status, index=index)
