"""The pages that people look at, and the parts of them that refresh themselves."""

from django.urls import path

from facho.dashboard.views import onus, overview, overview_live

urlpatterns = [
    path("", overview, name="dashboard"),
    path("live/", overview_live, name="dashboard-live"),
    path("onus/", onus, name="onus"),
]
