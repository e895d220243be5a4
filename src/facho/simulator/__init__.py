"""Plays OLTs on UDP ports: values that live, latency, loss, silence and lies."""
