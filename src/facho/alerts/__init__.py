"""Tells people what is wrong, once, and when it is over. Never starts a node, never asks a device."""
