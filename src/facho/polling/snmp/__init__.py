"""Talks SNMP to one device and reports in our words."""
