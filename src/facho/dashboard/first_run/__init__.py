"""Setting an OLT up by guided steps: add it, test SNMP, know what it is, choose jobs, see the first data.

Where somebody stands is read from the rows, so the steps go on wherever and whenever a browser is opened again.
"""
