"""The addresses of the login, of the first administrator and of the account page."""

from django.contrib.auth.views import LogoutView
from django.urls import path

from facho.dashboard.account.views import (
    Login,
    account,
    add_token,
    change_password,
    change_preferences,
    revoke_token,
    setup,
)

urlpatterns = [
    path("login/", Login.as_view(), name="login"),
    path("logout/", LogoutView.as_view(), name="logout"),
    path("setup/<str:token>/", setup, name="setup"),
    path("account/", account, name="account"),
    path("account/password/", change_password, name="account-password"),
    path("account/reading/", change_preferences, name="account-reading"),
    path("account/tokens/", add_token, name="account-tokens"),
    path("account/tokens/<int:token_id>/revoke/", revoke_token, name="account-revoke"),
]
