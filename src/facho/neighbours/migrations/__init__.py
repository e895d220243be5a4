"""Additive migrations, for SQLite and PostgreSQL alike."""
