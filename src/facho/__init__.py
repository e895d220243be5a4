"""Facho polls GPON OLTs over SNMP, one operation per OLT at a time."""
