"""Decides: what is due, what starts, what is retried. No I/O, no framework, no clock."""
