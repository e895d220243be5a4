"""Admin pages of people and of what they changed."""

from typing import Any

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
from facho.accounts.roles import ROLE_WORDS, Role, give_role, highest_of, last_admins_among, people, role_of
from facho.hosts.models import OltGroup
from facho.infrastructure.admin_pages import ReadOnlyAdmin

ROLES = [(role.value, ROLE_WORDS[role]) for role in Role]

# Roles are given with the account; Django's own groups and permissions would be a second way.
admin.site.unregister(User)
admin.site.unregister(Group)


class NewUserForm(AdminUserCreationForm):  # type: ignore[type-arg]  # generic in its stubs only
    role = forms.ChoiceField(label=_("Permissions"), choices=ROLES)


class UserForm(UserChangeForm):  # type: ignore[type-arg]  # generic in its stubs only
    """A user; the last administrator keeps that role."""

    role = forms.ChoiceField(label=_("Permissions"), choices=ROLES)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if "role" in self.fields:
            self.fields["role"].initial = highest_of(self.instance, self.instance.groups.values_list("name", flat=True))

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        keeps = cleaned.get("role") == Role.ADMIN and cleaned.get("is_active")
        if not keeps and last_admins_among([self.instance]):
            raise forms.ValidationError(_("This is the last administrator: add another one first."))
        return cleaned


class ProfileForm(forms.ModelForm):  # type: ignore[type-arg]  # generic in its stubs only
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
    model = Profile
    form = ProfileForm
    can_delete = False
    verbose_name_plural = _("Scope")


@admin.register(User)
class PersonAdmin(UserAdmin):  # type: ignore[type-arg]  # generic in its stubs only
    """Users; their permissions come from the role alone."""

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
        role = highest_of(user, [group.name for group in user.groups.all()])
        return str(ROLE_WORDS[role]) if role else "—"

    def get_queryset(self, request: HttpRequest) -> QuerySet[User]:
        """List users with their roles, without the console account."""
        return people().prefetch_related("groups").order_by("username")

    def get_inlines(self, request: HttpRequest, obj: Model | None = None) -> Any:
        return self.inlines if obj else []

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        super().save_model(request, obj, form, change)
        role = form.cleaned_data.get("role")
        if role and role_of(User.objects.get(pk=obj.pk)) != role:
            give_role(obj, Role(role))

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """Protect the last administrators and users in the audit log; allow deleting the rest."""
        deleted, counts, _missing_permissions, protected = super().get_deleted_objects(objs, request)
        last = _("%(user)s is the last administrator: add another one first.")
        known = _("%(user)s appears in the audit log: deactivate the account instead of deleting it.")
        acted = set(LogEntry.objects.filter(user__in=objs).order_by().values_list("user_id", flat=True))
        kept = [str(last % {"user": user}) for user in last_admins_among(objs)]
        kept += [str(known % {"user": user}) for user in objs if user.pk in acted]
        return deleted, counts, set(), [*protected, *kept]


@admin.register(LogEntry)
class AuditAdmin(ReadOnlyAdmin):
    """The audit log, latest first; written by pages, API, admin and console."""

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
        """Format the change: the admin stores it as a structure."""
        return entry.get_change_message()
