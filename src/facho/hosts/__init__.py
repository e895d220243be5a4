"""Keeps OLTs, brands, models, credentials and their health."""
