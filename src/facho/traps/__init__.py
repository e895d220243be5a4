"""Hears the notifications of OLTs and asks for the reads that they hint at."""
