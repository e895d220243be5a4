"""Where the guided steps live, under the address for adding an OLT."""

from django.urls import path

from facho.dashboard.first_run.views import add, choose_jobs, choose_vendor, correct, setup, setup_step, test_again

urlpatterns = [
    path("", add, name="olt-add"),
    path("<int:olt_id>/", setup, name="olt-setup"),
    path("<int:olt_id>/step/", setup_step, name="olt-setup-step"),
    path("<int:olt_id>/correct/", correct, name="olt-setup-correct"),
    path("<int:olt_id>/test/", test_again, name="olt-setup-test"),
    path("<int:olt_id>/vendor/", choose_vendor, name="olt-setup-vendor"),
    path("<int:olt_id>/jobs/", choose_jobs, name="olt-setup-jobs"),
]
