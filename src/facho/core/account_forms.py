"""The forms of one's own account: how one reads, and a new token."""

from typing import TYPE_CHECKING, Any
from zoneinfo import available_timezones

from django import forms
from django.conf import settings
from django.contrib.auth.forms import PasswordChangeForm
from django.contrib.auth.models import User
from django.utils.translation import gettext_lazy as _

from facho.accounts.models import Profile
from facho.accounts.roles import ROLE_WORDS, Role, role_of
from facho.accounts.scope import OltScope
from facho.api.tokens import DEFAULT_DAYS, MOST_DAYS
from facho.hosts.models import OltGroup

if TYPE_CHECKING:
    _ProfileForm = forms.ModelForm[Profile]
else:
    _ProfileForm = forms.ModelForm  # Django's forms take type parameters in their stubs only


def zone_choices() -> list[tuple[str, str]]:
    """Offer the installation's time zone, which is the empty choice, and every one by its name."""
    default = _("the installation's: %(zone)s") % {"zone": settings.TIME_ZONE}
    return [("", default), *((zone, zone) for zone in sorted(available_timezones()))]


class TastesForm(_ProfileForm):
    """Language and time zone; empty is the installation's own."""

    language = forms.ChoiceField(
        label=_("Language"), required=False, choices=[("", _("as the browser asks for")), *settings.LANGUAGES]
    )
    time_zone = forms.ChoiceField(label=_("Time zone"), required=False, choices=zone_choices)

    class Meta:
        model = Profile
        fields = ["language", "time_zone"]

    def __init__(self, data: Any = None, *, instance: Profile | None = None) -> None:
        super().__init__(data, instance=instance, label_suffix="")


class OwnPasswordForm(PasswordChangeForm):
    """The old password and twice a new one, by the rules; it is one form of several and takes no focus."""

    def __init__(self, user: User, data: Any = None) -> None:
        super().__init__(user, data, label_suffix="")
        self.fields["old_password"].widget.attrs.pop("autofocus", None)


class TokenForm(forms.Form):
    """What a new token is for, what it may do and see, and when it ends."""

    name = forms.CharField(
        label=_("What is it for?"),
        max_length=80,
        widget=forms.TextInput(attrs={"placeholder": _("for example: Grafana"), "autocomplete": "off"}),
    )
    role = forms.ChoiceField(label=_("What it may do"))
    days = forms.IntegerField(label=_("Days until it ends"), min_value=1, max_value=MOST_DAYS, initial=DEFAULT_DAYS)
    olt_groups = forms.ModelMultipleChoiceField(
        OltGroup.objects.none(),
        label=_("Only the OLTs of these groups"),
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text=_("None: all OLTs that you see."),
    )

    def __init__(self, user: User, scope: OltScope, data: Any = None) -> None:
        super().__init__(data, auto_id="token-%s", label_suffix="")
        highest = role_of(user)
        self.fields["role"].choices = [  # type: ignore[attr-defined]
            (role.value, ROLE_WORDS[role]) for role in Role if highest and highest.includes(role)
        ]
        groups = OltGroup.objects.all() if scope.group_ids is None else OltGroup.objects.filter(id__in=scope.group_ids)
        self.fields["olt_groups"].queryset = groups  # type: ignore[attr-defined]
        if not groups.exists():
            del self.fields["olt_groups"]
