"""Admin pages of people and of what they changed."""

from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.contrib.auth.admin import UserAdmin
from django.contrib.auth.forms import AdminUserCreationForm, UserChangeForm
from django.contrib.auth.models import Group, User
from django.db.models import Model, QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from facho.accounts.models import Profile
from facho.accounts.people import last_admins_among, people
from facho.accounts.roles import ROLE_WORDS, Role, give_role, highest_of, role_of
from facho.hosts.admin_pages import ReadOnlyAdmin
from facho.hosts.models import OltGroup

if TYPE_CHECKING:
    _ProfileForm = forms.ModelForm[Profile]
    _NewUserForm = AdminUserCreationForm[User]
    _UserForm = UserChangeForm[User]
else:
    _ProfileForm, _NewUserForm, _UserForm = forms.ModelForm, AdminUserCreationForm, UserChangeForm

ROLES = [(role.value, ROLE_WORDS[role]) for role in Role]

# Roles are given with the account; Django's own groups and permissions would be a second way.
admin.site.unregister(User)
admin.site.unregister(Group)


class NewUserForm(_NewUserForm):
    """A new person: name, password by the rules, role."""

    role = forms.ChoiceField(label=_("What the person may do"), choices=ROLES)


class UserForm(_UserForm):
    """A person; the last who may administer keeps that."""

    role = forms.ChoiceField(label=_("What the person may do"), choices=ROLES)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if "role" in self.fields:
            self.fields["role"].initial = highest_of(self.instance, self.instance.groups.values_list("name", flat=True))

    def clean(self) -> dict[str, Any]:
        """Refuse to take the last administrator away."""
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        keeps = cleaned.get("role") == Role.ADMIN and cleaned.get("is_active")
        if not keeps and last_admins_among([self.instance]):
            raise forms.ValidationError(_("This is the last administrator: make another one first."))
        return cleaned


class ProfileForm(_ProfileForm):
    """What a person may see, and how they like to read."""

    olt_groups = forms.ModelMultipleChoiceField(
        OltGroup.objects.all(),
        label=_("OLT groups"),
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text=_("Only the OLTs of these groups are shown; none: all OLTs. Administrators see all in the admin."),
    )

    class Meta:
        model = Profile
        fields = ["olt_groups", "language", "time_zone"]


class ProfileInline(admin.StackedInline):  # type: ignore[type-arg]  # generic in its stubs only
    """The profile of a person, on their page."""

    model = Profile
    form = ProfileForm
    can_delete = False
    verbose_name_plural = _("What they see")


@admin.register(User)
class PersonAdmin(UserAdmin):  # type: ignore[type-arg]  # generic in its stubs only
    """People: their role is the one thing that says what they may do."""

    form = UserForm
    add_form = NewUserForm
    inlines = [ProfileInline]
    list_display = ["username", "email", "role", "is_active", "last_login"]
    list_filter = ["is_active", "groups"]
    filter_horizontal = ()
    readonly_fields = ["last_login", "date_joined"]
    fieldsets = [
        (None, {"fields": ["username", "password", "role", "is_active"]}),
        (_("Person"), {"fields": ["first_name", "last_name", "email", "last_login", "date_joined"]}),
    ]
    add_fieldsets = [(None, {"fields": ["username", "usable_password", "password1", "password2", "role"]})]

    @admin.display(description=_("role"))
    def role(self, user: User) -> str:
        """Show the role in words."""
        role = highest_of(user, [group.name for group in user.groups.all()])
        return str(ROLE_WORDS[role]) if role else "—"

    def get_queryset(self, request: HttpRequest) -> QuerySet[User]:
        """Show people alone, with their roles."""
        return people().prefetch_related("groups").order_by("username")

    def get_inlines(self, request: HttpRequest, obj: Model | None = None) -> Any:
        """Ask for the profile once there is somebody to have it."""
        return self.inlines if obj else []

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Save the person with the role."""
        super().save_model(request, obj, form, change)
        role = form.cleaned_data.get("role")
        if role and role_of(User.objects.get(pk=obj.pk)) != role:
            give_role(obj, Role(role))

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """Protect the last administrators and whoever is in the trail, and allow what goes with others."""
        deleted, counts, _missing_permissions, protected = super().get_deleted_objects(objs, request)
        last = _("%(user)s is the last administrator: make another one first.")
        known = _("%(user)s has changed things: close the account instead, so that the trail stays.")
        acted = set(LogEntry.objects.filter(user__in=objs).order_by().values_list("user_id", flat=True))
        kept = [str(last % {"user": user}) for user in last_admins_among(objs)]
        kept += [str(known % {"user": user}) for user in objs if user.pk in acted]
        return deleted, counts, set(), [*protected, *kept]


@admin.register(LogEntry)
class AuditAdmin(ReadOnlyAdmin):
    """Who changed what, the latest first; written by pages, API, admin and console."""

    olt_path = ""
    list_display = ["action_time", "user", "action_flag", "content_type", "object_repr", "words"]
    list_display_links = ["action_time"]
    list_filter = ["action_flag", "content_type"]
    list_select_related = ["user", "content_type"]
    search_fields = ["user__username", "object_repr", "change_message"]
    date_hierarchy = "action_time"
    ordering = ["-action_time", "-id"]
    fields = ["action_time", "user", "action_flag", "content_type", "object_id", "object_repr", "words"]

    @admin.display(description=_("what changed"))
    def words(self, entry: LogEntry) -> str:
        """Say what changed: the admin keeps it as a structure."""
        return entry.get_change_message()
