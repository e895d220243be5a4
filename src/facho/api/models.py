"""API tokens: only a hash is stored, so a stolen database opens nothing."""

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from facho.hosts.models import OltGroup


class ApiToken(models.Model):
    """A user's token; its text is shown once, on creation."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="api_tokens", verbose_name=_("user")
    )
    digest = models.CharField(max_length=64, unique=True, editable=False)
    name = models.CharField(_("name"), max_length=80, blank=True, default="", db_default="")
    role = models.CharField(_("role"), max_length=10)
    olt_groups = models.ManyToManyField(
        OltGroup,
        through="TokenGroup",
        blank=True,
        related_name="api_tokens",
        verbose_name=_("OLT groups"),
        help_text=_("Only the OLTs of these groups are shown; none: all that its owner sees."),
    )
    created_at = models.DateTimeField(_("created"), auto_now_add=True)
    expires_at = models.DateTimeField(_("expires"), null=True, blank=True)
    last_used_at = models.DateTimeField(_("last used"), null=True, blank=True)

    class Meta:
        verbose_name = _("API token")
        verbose_name_plural = _("API tokens")
        ordering = ["user", "id"]

    def __str__(self) -> str:
        return " · ".join(filter(None, [str(self.user), self.name, self.role]))


class TokenGroup(models.Model):
    """A group a token is limited to. It cannot be deleted while the token exists: the token would see more."""

    token = models.ForeignKey(ApiToken, on_delete=models.CASCADE, verbose_name=_("API token"))
    oltgroup = models.ForeignKey(OltGroup, on_delete=models.PROTECT, verbose_name=_("OLT group"))

    class Meta:
        verbose_name = _("limit to an OLT group")
        verbose_name_plural = _("limits to OLT groups")
        constraints = [models.UniqueConstraint(fields=["token", "oltgroup"], name="one_limit_per_token_and_group")]

    def __str__(self) -> str:
        return f"{self.token} · {self.oltgroup}"


class KeptAnswer(models.Model):
    """The stored answer to a request with an idempotency key; empty while it is processed."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    key = models.CharField(max_length=100)
    path = models.CharField(max_length=200)
    status = models.PositiveSmallIntegerField(null=True)
    body = models.JSONField(null=True)
    created_at = models.DateTimeField()

    class Meta:
        verbose_name = _("stored API answer")
        verbose_name_plural = _("stored API answers")
        constraints = [models.UniqueConstraint(fields=["user", "key"], name="one_answer_per_user_and_key")]
        indexes = [models.Index(fields=["created_at"], name="kept_answer_created")]

    def __str__(self) -> str:
        return f"{self.user_id} · {self.key}"
