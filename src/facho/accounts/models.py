"""What a user's account keeps beyond Django's own: the OLTs they may see, and how they like to read."""

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from facho.hosts.models import OltGroup


class Profile(models.Model):
    """One user's limits and tastes; a user without one sees every OLT, in the installation's words and time."""

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="profile", verbose_name=_("user")
    )
    olt_groups = models.ManyToManyField(
        OltGroup,
        blank=True,
        related_name="profiles",
        verbose_name=_("OLT groups"),
        help_text=_("Only the OLTs of these groups are shown; none: all OLTs."),
    )
    language = models.CharField(_("language"), max_length=5, blank=True, choices=settings.LANGUAGES)
    time_zone = models.CharField(_("time zone"), max_length=60, blank=True)

    class Meta:
        verbose_name = _("profile")
        verbose_name_plural = _("profiles")

    def __str__(self) -> str:
        return str(self.user)


class Acknowledgeable(models.Model):
    """Something wrong that a person can take note of, so that others need not."""

    acknowledged_at = models.DateTimeField(_("acknowledged"), null=True, blank=True, editable=False)
    acknowledged_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        editable=False,
        related_name="+",
        verbose_name=_("acknowledged by"),
    )
    acknowledgement = models.CharField(_("note"), max_length=500, blank=True, default="", db_default="")

    class Meta:
        abstract = True
