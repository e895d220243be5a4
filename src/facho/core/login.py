"""The login page; before anyone can log in it says how the first administrator is made."""

from typing import Any

from django.contrib.auth.models import User
from django.contrib.auth.views import LoginView


class Login(LoginView):
    """Django's own login in our design."""

    template_name = "core/login.html"
    redirect_authenticated_user = True

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """Tell whether there is anyone who could log in."""
        return super().get_context_data(**kwargs, has_users=User.objects.exists())
