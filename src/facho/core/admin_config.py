"""Registers Django's admin with our index."""

from django.contrib.admin.apps import AdminConfig


class FachoAdminConfig(AdminConfig):
    """Django's admin app."""

    default_site = "facho.core.admin_site.FachoAdminSite"
