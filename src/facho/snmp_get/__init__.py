"""Collects: discovery, walks, ONU batches. Never chooses when."""
