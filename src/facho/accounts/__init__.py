"""Keeps people: what they may do, which OLTs they may see, and how they like to read. Never polls."""
