"""What rules look for: each condition finds, for all OLTs at once and by few queries, what is wrong right now."""
