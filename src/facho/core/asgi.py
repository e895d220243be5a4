"""The application that the HTTP server calls."""

import os
import warnings

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "facho.core.settings")

# WhiteNoise reads its few small files synchronously; Django would say so at each of them.
warnings.filterwarnings("ignore", message="StreamingHttpResponse must consume synchronous iterators")

application = get_asgi_application()
