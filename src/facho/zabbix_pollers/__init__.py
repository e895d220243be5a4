"""The only scheduler: matches due nodes to free pollers, one per OLT."""
