"""Keeps what was learned about ONUs."""
