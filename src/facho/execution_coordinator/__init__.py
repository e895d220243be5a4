"""Watches: changes, quotas, violations, plans, log. Never starts a node."""
