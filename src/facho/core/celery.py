"""Where `celery -A facho.core worker` and `celery -A facho.core beat` find the app."""

from facho.core.processes.celery_app import app

__all__ = ["app"]
