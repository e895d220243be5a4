"""Measures what polling costs, against peers and against itself; `python -m bench` prints tables."""
