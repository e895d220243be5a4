"""What a probe found wrong: finer than a failure's kind, since each finding has another remedy."""

from enum import StrEnum


class ProbeFinding(StrEnum):
    """Where reaching an OLT fails; each has advice for the operator."""

    # Nothing came back, and nothing else helped to find out why.
    SILENT = "silent"
    # Nothing came back in the version that was asked, but it speaks another.
    SPEAKS_V1 = "speaks_v1"
    SPEAKS_V2C = "speaks_v2c"
    SPEAKS_V3 = "speaks_v3"
    # A v3 agent identified itself, and then did not answer our question.
    IGNORES_USER = "ignores_user"
    PORT_CLOSED = "port_closed"
    NO_ROUTE = "no_route"
    NO_SOURCE = "no_source"
    UNKNOWN_USER = "unknown_user"
    WRONG_LEVEL = "wrong_level"
    WRONG_AUTH = "wrong_auth"
    WRONG_PRIV = "wrong_priv"
    # It answered, and will not let us read what it is.
    NOT_ALLOWED = "not_allowed"
    # It answered, and its view hides what lists ONUs: all of it, or their serials.
    ONUS_HIDDEN = "onus_hidden"
    SERIALS_HIDDEN = "serials_hidden"
    # What is stored is no credential, or cannot be decrypted.
    BAD_CREDENTIAL = "bad_credential"
    NOT_SNMP = "not_snmp"
    STOPPED = "stopped"
    FAULT = "fault"
