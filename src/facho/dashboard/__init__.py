"""Shows and accepts, as pages."""
