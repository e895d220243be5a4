"""Every address the product answers."""

from django.contrib import admin
from django.contrib.auth.views import LogoutView
from django.urls import include, path

from facho.api.metrics import MetricsView
from facho.core.first_admin import setup
from facho.core.health import livez, readyz
from facho.core.login import Login, admin_login

urlpatterns = [
    path("", include("facho.dashboard.urls")),
    path("api/v1/", include("facho.api.urls")),
    # Before the admin's own: there is one way to log in.
    path("admin/login/", admin_login),
    path("admin/", admin.site.urls),
    path("login/", Login.as_view(), name="login"),
    path("account/", include("facho.core.account_urls")),
    path("logout/", LogoutView.as_view(), name="logout"),
    path("setup/<str:token>/", setup, name="setup"),
    path("livez", livez, name="livez"),
    path("readyz", readyz, name="readyz"),
    path("metrics", MetricsView.as_view(), name="metrics"),
]

handler400 = "facho.core.error_pages.bad_request"
handler403 = "facho.core.error_pages.permission_denied"
handler404 = "facho.core.error_pages.not_found"
handler500 = "facho.core.error_pages.server_error"
