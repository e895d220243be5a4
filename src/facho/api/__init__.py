"""Shows and accepts, under /api/v1/."""
