"""Keeps job templates, workflows and nodes, and each node's next run."""
