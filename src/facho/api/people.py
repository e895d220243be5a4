"""Accounts, the OLT groups that they are limited to, and their tokens: for administrators who see every OLT."""

from datetime import timedelta
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Count, Model, ProtectedError, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import mixins, serializers, status, viewsets
from rest_framework.decorators import action
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from facho.accounts.audit import Action, changed_words, record
from facho.accounts.people import facts_of, find_faults, give, make_link, may_have_link
from facho.accounts.roles import Role, highest_of, people
from facho.api.models import ApiToken
from facho.api.shared import filters
from facho.api.shared.permissions import AdministerAll
from facho.api.shared.problems import Conflict, collisions_are_conflicts
from facho.api.shared.views import (
    DeletedRows,
    KnownFields,
    RowSerializer,
    WrittenRows,
    described,
    read_body,
    read_nothing,
    valid,
)
from facho.api.tokens import DEFAULT_DAYS, MOST_DAYS, RoleTooHigh, create_token, digest
from facho.hosts.models import GROUP_IN_USE, OltGroup

MOST_GROUPS = 200
MAX_ID = 2**63 - 1
ROLES = [role.value for role in Role]
# What is shown once belongs into no cache on its way.
ONCE = {"Cache-Control": "no-store"}


@extend_schema_field({"type": "array", "items": {"type": "integer"}, "maxItems": MOST_GROUPS})
class GroupsField(serializers.ListField):
    """OLT groups by their ids, loaded together."""

    child = serializers.IntegerField(min_value=1, max_value=MAX_ID)

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(max_length=MOST_GROUPS, source="olt_groups", required=False, **kwargs)

    def to_internal_value(self, data: Any) -> Any:
        ids = super().to_internal_value(data)
        groups = list(OltGroup.objects.filter(id__in=ids))
        if missing := set(ids) - {group.pk for group in groups}:
            raise ValidationError([_("There is no OLT group %(id)s.") % {"id": min(missing)}])
        return groups


def group_ids_of(thing: Any) -> list[int]:
    return sorted(group.pk for group in thing.olt_groups.all())


class UserSerializer(serializers.ModelSerializer[User]):
    """An account; without OLT groups it sees every OLT of its role. No password and no secret is in it."""

    role = serializers.SerializerMethodField()
    olt_group_ids = serializers.SerializerMethodField()
    signs_on_elsewhere = serializers.SerializerMethodField()
    has_password = serializers.BooleanField(source="has_usable_password")

    class Meta:
        model = User
        fields = [
            "id",
            "username",
            "email",
            "role",
            "olt_group_ids",
            "is_active",
            "signs_on_elsewhere",
            "has_password",
            "last_login",
        ]

    @extend_schema_field({"type": ["string", "null"], "enum": [*ROLES, None]})
    def get_role(self, user: User) -> str | None:
        return highest_of(user, [group.name for group in user.groups.all()])

    def get_olt_group_ids(self, user: User) -> list[int]:
        return group_ids_of(user.profile) if hasattr(user, "profile") else []

    def get_signs_on_elsewhere(self, user: User) -> bool:
        return hasattr(user, "identity")


class LinkSerializer(serializers.Serializer[Any]):
    """The address at which the person chooses a password: it works once, for three days, and is not shown again."""

    link = serializers.CharField()


class NewUserSerializer(UserSerializer):
    """A new account, with the link by which its owner chooses a password: shown this one time."""

    link = serializers.CharField()

    class Meta(UserSerializer.Meta):
        fields = [*UserSerializer.Meta.fields, "link"]


class UserWishSerializer(KnownFields, serializers.ModelSerializer[User]):
    """The fields of an account that can be written; `olt_group_ids` replaces all its limits, empty means every OLT."""

    role = serializers.ChoiceField(choices=ROLES)
    olt_group_ids = GroupsField()

    class Meta:
        model = User
        fields = ["username", "email", "role", "olt_group_ids", "is_active"]

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        user = self.instance or User()
        stored = facts_of(user)["role"] if user.pk else None
        by = self.context["by"]
        is_active = attrs.get("is_active", user.is_active)
        if faults := find_faults(user, by, role=attrs.get("role", stored), is_active=is_active):
            raise serializers.ValidationError(faults)
        return attrs


class UserViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[User]):
    """Accounts by name. They are disabled and never deleted: what they did stays theirs."""

    serializer_class = UserSerializer
    permission_classes = [AdministerAll]
    query_parameters = {
        "search": filters.QueryParameter(
            filters.search("username", "email").narrow, description="Part of: username, email."
        ),
        "role": filters.one_of("groups__name", ROLES),
        "active": filters.flag("is_active"),
    }

    def get_queryset(self) -> QuerySet[User]:
        rows = people().select_related("identity", "profile").prefetch_related("groups", "profile__olt_groups")
        return rows.order_by("username", "id")

    @extend_schema(request=UserWishSerializer, responses={201: NewUserSerializer})
    def create(self, request: Request) -> Response:
        """Create an account without a password; answers with the link by which its owner chooses one."""
        user = self._save(request, None)
        shown = UserSerializer(self.get_queryset().get(pk=user.pk)).data
        return Response(
            {**shown, "link": make_link(request._request, user)}, status=status.HTTP_201_CREATED, headers=ONCE
        )

    @extend_schema(request=UserWishSerializer, responses=UserSerializer)
    def partial_update(self, request: Request, pk: str) -> Response:
        """Change an account; a disabled one is let in nowhere, and neither are its tokens."""
        user = self._save(request, self.get_object())
        return Response(UserSerializer(self.get_queryset().get(pk=user.pk)).data)

    @extend_schema(request=None, responses=LinkSerializer)
    @action(detail=True, methods=["post"])
    def link(self, request: Request, pk: str) -> Response:
        """Make a link for another password; the old password holds until then."""
        read_nothing(request)
        user = self.get_object()
        if not may_have_link(user):
            raise Conflict(_("This account is disabled, or signs on elsewhere: no password is chosen for it."))
        with transaction.atomic():
            record(request.user, user, Action.CHANGED, _("A link to choose a password was made."))
        return Response({"link": make_link(request._request, user)}, headers=ONCE)

    def _save(self, request: Request, user: User | None) -> User:
        wish = UserWishSerializer(user, data=read_body(request), partial=user is not None, context={"by": request.user})
        before = facts_of(user) if user else {}
        values = valid(wish)
        role, groups = values.pop("role", None), values.pop("olt_groups", None)
        saved = user or User()
        for name, value in values.items():
            setattr(saved, name, value)
        with collisions_are_conflicts(), transaction.atomic():
            if user is None:
                saved.set_unusable_password()
            saved.save()
            if role is not None or groups is not None:
                kept = OltGroup.objects.filter(profiles__user=saved)
                give(saved, Role(role or before["role"]), kept if groups is None else groups)
            words = changed_words(before, facts_of(saved))
            if words:
                record(request.user, saved, Action.CHANGED if user else Action.ADDED, words)
        return saved


class OltGroupSerializer(serializers.ModelSerializer[OltGroup]):
    """A group of OLTs, and how many are in it."""

    olts = serializers.IntegerField(source="olts_counted", read_only=True)

    class Meta:
        model = OltGroup
        fields = ["id", "name", "olts"]


class OltGroupWishSerializer(KnownFields, serializers.ModelSerializer[OltGroup]):
    """The fields of a group that can be written; an OLT gets its group where its connection is written."""

    class Meta:
        model = OltGroup
        fields = ["name"]


@described(create="Create a group without OLTs.", change="Rename a group.")
class OltGroupViewSet(WrittenRows):
    """Groups of OLTs by name."""

    serializer_class = OltGroupSerializer
    wish_class = OltGroupWishSerializer
    permission_classes = [AdministerAll]
    query_parameters = {"search": filters.search("name")}
    queryset = OltGroup.objects.annotate(olts_counted=Count("olts")).order_by("name", "id")

    def perform_destroy(self, instance: Model) -> None:
        """Delete a group; its OLTs stay, without one. 409 while people, tokens or rules are limited to it."""
        try:
            super().perform_destroy(instance)
        except ProtectedError as error:
            raise Conflict(GROUP_IN_USE % {"group": instance}) from error

    def save(self, wish: "serializers.BaseSerializer[Any]", done: Action) -> OltGroup:
        before = wish.instance.name if wish.instance else None
        group: OltGroup = wish.save()
        if words := changed_words({"name": before}, {"name": group.name}):
            record(self.request.user, group, done, words)
        return group


class TokenSerializer(RowSerializer[ApiToken]):
    """A token without its text, which is stored nowhere."""

    olt_group_ids = serializers.SerializerMethodField()

    class Meta:
        model = ApiToken
        fields = [
            "id",
            "user_id",
            "user",
            "name",
            "role",
            "olt_group_ids",
            "created_at",
            "expires_at",
            "last_used_at",
        ]

    def get_olt_group_ids(self, token: ApiToken) -> list[int]:
        return group_ids_of(token)


class NewTokenSerializer(TokenSerializer):
    """A new token with its text: shown this one time."""

    token = serializers.CharField()

    class Meta(TokenSerializer.Meta):
        fields = [*TokenSerializer.Meta.fields, "token"]


class TokenWishSerializer(KnownFields):
    """Whose token, what it may do at most, and when it ends; by default it may do what its owner may."""

    user_id = serializers.PrimaryKeyRelatedField(source="user", queryset=people())
    name = serializers.CharField(max_length=80, required=False, allow_blank=True, default="")
    role = serializers.ChoiceField(choices=ROLES, required=False)
    days = serializers.IntegerField(min_value=1, max_value=MOST_DAYS, required=False, default=DEFAULT_DAYS)
    olt_group_ids = GroupsField()


class TokenViewSet(DeletedRows):
    """Tokens of every account. They do not change: another one is made, and the old one revoked."""

    serializer_class = TokenSerializer
    permission_classes = [AdministerAll]
    query_parameters = {"user": filters.number("user_id"), "role": filters.one_of("role", ROLES)}
    queryset = ApiToken.objects.select_related("user").prefetch_related("olt_groups").order_by("-id")

    @extend_schema(request=TokenWishSerializer, responses={201: NewTokenSerializer})
    def create(self, request: Request) -> Response:
        """Create a token; answers with its text, this one time."""
        values = valid(TokenWishSerializer(data=read_body(request)))
        try:
            with transaction.atomic():
                text = create_token(
                    values["user"],
                    role=Role(values["role"]) if "role" in values else None,
                    expires_at=timezone.now() + timedelta(days=values["days"]),
                    name=values["name"],
                    olt_groups=values.get("olt_groups", ()),
                )
                token = self.get_queryset().get(digest=digest(text))
                record(request.user, token, Action.ADDED)
        except RoleTooHigh as error:
            raise ValidationError({"role": [_("Its owner has fewer rights than that.")]}) from error
        shown = TokenSerializer(token).data
        return Response({**shown, "token": text}, status=status.HTTP_201_CREATED, headers=ONCE)
