"""The addresses of one's own account."""

from django.urls import path

from facho.core.account_page import account, add_token, change_password, change_tastes, revoke_token

urlpatterns = [
    path("", account, name="account"),
    path("password/", change_password, name="account-password"),
    path("reading/", change_tastes, name="account-reading"),
    path("tokens/", add_token, name="account-tokens"),
    path("tokens/<int:token_id>/revoke/", revoke_token, name="account-revoke"),
]
