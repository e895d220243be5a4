"""Scope and preferences of a user, failed attempts, and acknowledgements."""

from django.conf import settings
from django.contrib.sessions.models import Session
from django.db import models
from django.utils.translation import gettext_lazy as _

from facho.hosts.models import OltGroup
from facho.infrastructure.secrets import SecretField


class Profile(models.Model):
    """A user's scope and preferences; without one, all OLTs and the installation's language and time zone."""

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="profile", verbose_name=_("user")
    )
    olt_groups = models.ManyToManyField(
        OltGroup,
        through="ProfileGroup",
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


class ProfileGroup(models.Model):
    """A group a user is limited to. It cannot be deleted: a user without groups would see everything."""

    profile = models.ForeignKey(Profile, on_delete=models.CASCADE, verbose_name=_("profile"))
    oltgroup = models.ForeignKey(OltGroup, on_delete=models.PROTECT, verbose_name=_("OLT group"))

    class Meta:
        db_table = "accounts_profile_olt_groups"
        verbose_name = _("limit to an OLT group")
        verbose_name_plural = _("limits to OLT groups")
        unique_together = [("profile", "oltgroup")]

    def __str__(self) -> str:
        return f"{self.profile} · {self.oltgroup}"


class FailedTries(models.Model):
    """Recent wrong passwords or tokens for one key, which is a digest."""

    key = models.CharField(max_length=64, unique=True)
    failures = models.PositiveIntegerField(_("failures"))
    failed_at = models.DateTimeField(_("last failure"), db_index=True)

    class Meta:
        verbose_name = _("failed attempts")
        verbose_name_plural = _("failed attempts")

    def __str__(self) -> str:
        return str(self.failures)


class LinkedIdentity(models.Model):
    """An account's identity at a provider or in a directory. Names and e-mail addresses never link one."""

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="identity", verbose_name=_("user")
    )
    issuer = models.CharField(_("issuer"), max_length=255)
    subject = models.CharField(_("subject"), max_length=255)
    signed_on_at = models.DateTimeField(_("last sign-on"))

    class Meta:
        verbose_name = _("linked identity")
        verbose_name_plural = _("linked identities")
        constraints = [models.UniqueConstraint(fields=["issuer", "subject"], name="one_account_per_identity")]

    def __str__(self) -> str:
        return f"{self.issuer} · {self.subject}"


class WayIn(models.TextChoices):
    PASSWORD = "password", _("password")
    CODE = "code", _("password and code")
    RECOVERY = "recovery", _("password and recovery code")
    PASSKEY = "passkey", _("passkey")
    PROVIDER = "provider", _("company account")
    DIRECTORY = "directory", _("directory")
    LINK = "link", _("link")


class LoginSession(models.Model):
    """What people are shown of a session; deleted with it."""

    session = models.OneToOneField(Session, on_delete=models.CASCADE, related_name="login", verbose_name=_("session"))
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="login_sessions", verbose_name=_("user")
    )
    way = models.CharField(_("log-in by"), max_length=10, choices=WayIn.choices)
    begun_at = models.DateTimeField(_("begun"))
    # Some minutes old at most.
    seen_at = models.DateTimeField(_("last used"))
    address = models.CharField(_("address"), max_length=45)
    browser = models.CharField(_("browser"), max_length=40, blank=True)

    class Meta:
        verbose_name = _("session")
        verbose_name_plural = _("sessions")

    def __str__(self) -> str:
        return ", ".join(filter(None, [self.browser, self.address]))


class SavedView(models.Model):
    """A list as a person wants to see it again: the query string of its address."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="saved_views", verbose_name=_("user")
    )
    page = models.CharField(_("page"), max_length=40)
    name = models.CharField(_("name"), max_length=60)
    query = models.CharField(_("query"), max_length=2000, blank=True)

    class Meta:
        verbose_name = _("saved view")
        verbose_name_plural = _("saved views")
        constraints = [models.UniqueConstraint(fields=["user", "page", "name"], name="one_view_per_name")]

    def __str__(self) -> str:
        return self.name


class Acknowledgeable(models.Model):
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


class SecondFactor(models.Model):
    """The key of somebody's authenticator app; until it is confirmed with a code, it is not asked for."""

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="second_factor", verbose_name=_("user")
    )
    key = SecretField(_("key"))
    confirmed_at = models.DateTimeField(_("set up"), null=True, blank=True)
    # Of 30 seconds each: a code is accepted once, and none from before it.
    last_step = models.BigIntegerField(_("last step"), default=0)

    class Meta:
        verbose_name = _("second factor")
        verbose_name_plural = _("second factors")

    def __str__(self) -> str:
        return str(self.user)


class Passkey(models.Model):
    """A key pair of which an authenticator keeps the secret half; it stands for password and second factor."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="passkeys", verbose_name=_("user")
    )
    name = models.CharField(_("name"), max_length=60)
    # It works where people use this host name, and nowhere else.
    host = models.CharField(_("host name"), max_length=253)
    # Of the credential's id, which may be a kilobyte.
    digest = models.CharField(max_length=64, unique=True)
    # Id and public key, as the authenticator gave them.
    credential = models.BinaryField()
    # Signatures so far; 0 when the authenticator does not count.
    counter = models.BigIntegerField(default=0)
    # When it was asked for.
    created_at = models.DateTimeField(_("created"))
    # When the question was asked that it answered last: it answers each once, and none from before.
    used_at = models.DateTimeField(_("last used"), null=True, blank=True)

    class Meta:
        verbose_name = _("passkey")
        verbose_name_plural = _("passkeys")
        constraints = [models.UniqueConstraint(fields=["user", "created_at"], name="one_passkey_per_question")]

    def __str__(self) -> str:
        return self.name


class RecoveryCode(models.Model):
    """A digest of a code that replaces the second factor once; it is deleted when used."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="recovery_codes", verbose_name=_("user")
    )
    digest = models.CharField(max_length=64, unique=True)

    class Meta:
        verbose_name = _("recovery code")
        verbose_name_plural = _("recovery codes")

    def __str__(self) -> str:
        return str(self.user)


class SecondFactorDuty(models.Model):
    """A role whose local accounts must have a second factor."""

    role = models.CharField(_("role"), max_length=10, unique=True)

    class Meta:
        verbose_name = _("required second factor")
        verbose_name_plural = _("required second factors")

    def __str__(self) -> str:
        return self.role
