"""The application that the HTTP server calls."""

import os

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "facho.core.settings")
application = get_asgi_application()
