"""Addresses of the API that are about other systems; below /api/v1/."""

from django.urls import include, path
from rest_framework.routers import SimpleRouter

from facho.neighbours.webhook_api import WebhookDeliveryViewSet, WebhookViewSet

router = SimpleRouter()
router.register("webhooks", WebhookViewSet, basename="webhook")

urlpatterns = [
    path("", include(router.urls)),
    path(
        "webhooks/<int:webhook_id>/deliveries/",
        WebhookDeliveryViewSet.as_view({"get": "list"}),
        name="webhook-deliveries",
    ),
]
