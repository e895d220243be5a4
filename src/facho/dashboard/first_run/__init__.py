"""Setting an OLT up by guided steps: add it, test SNMP, know what it is, choose jobs, see the first data.

The current step is derived from the rows, so setup continues in any browser at any time.
"""
