"""Notifies people of what is wrong, once, and when it is over. Never starts a node, never polls a device."""
