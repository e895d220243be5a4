"""Records each run and carries it out."""
