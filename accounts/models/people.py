"""Tables of people: accounts, groups, roles, tokens, one-time links, idempotency records."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib.auth.models import AbstractUser, UserManager
from django.core.validators import RegexValidator
from django.db import models
from django.db.models import Model
from django.db.models.functions import Lower
from django.utils.timezone import now
from django.utils.translation import gettext, pgettext_lazy
from django.utils.translation import gettext_lazy as _

from accounts.access.permissions import ADMIN_ONLY, Action, known_actions
from accounts.access.querysets import AdministeredQuerySet, OwnRowsQuerySet, PeopleQuerySet
from accounts.models.reserved_names import check_username
from aiplatform.lib.errors import NotAllowed
from aiplatform.lib.prepared import PreparedQuery


class NoRights(NotAllowed, code="no_rights"):
    """An account without a role."""


class Role(models.Model):
    """A named set of actions. Preset roles come with the system and stay."""

    name = models.CharField(_("name"), max_length=50, unique=True)
    description = models.CharField(_("description"), max_length=200, blank=True)
    preset = models.BooleanField(pgettext_lazy("role", "preset"), default=False, editable=False)
    actions = models.JSONField(_("actions"), default=list)  # list of Action values

    objects = AdministeredQuerySet.as_manager()

    class Meta:
        ordering = ["-preset", "name"]

    def __str__(self) -> str:
        return self.label

    def allows(self) -> frozenset[Action]:
        """Return its actions, without those of other versions of the platform."""
        return known_actions(self.actions)

    @property
    def label(self) -> str:
        """Its name; of a preset role in the reader's language."""
        return gettext(self.name) if self.preset else self.name

    @property
    def about(self) -> str:
        """Its description; of a preset role in the reader's language."""
        return gettext(self.description) if self.preset and self.description else self.description


class UserGroup(models.Model):
    """People who share roles."""

    name = models.CharField(_("name"), max_length=50, unique=True)
    description = models.CharField(_("description"), max_length=200)
    roles = models.ManyToManyField(Role, related_name="user_groups", blank=True, verbose_name=_("roles"))
    created_at = models.DateTimeField(default=now, editable=False)
    django_group = models.OneToOneField(  # shares of single rows, see accounts/access/sharing.py
        "auth.Group", models.SET_NULL, null=True, editable=False, related_name="people_group"
    )

    objects = AdministeredQuerySet.as_manager()

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class PeopleManager(UserManager.from_queryset(PeopleQuerySet)):  # type: ignore[misc]  # a base that Django makes
    """Makes accounts as Django's own manager does, with our querysets."""

    use_in_migrations = False


#: What the roles of an account allow, its own and those of its groups; every request asks for it.
_ACTIONS = PreparedQuery(
    lambda user: Role.objects.filter(models.Q(users=user) | models.Q(user_groups__users=user)).values_list("actions")
)


class Guide(models.TextChoices):
    """Whether the home page shows the first-run guide."""

    AUTO = "", _("Until completed")
    SHOWN = "shown", _("Shown")
    HIDDEN = "hidden", _("Hidden")


class User(AbstractUser):
    """A person. What they may do comes from their roles and their groups' roles."""

    username = models.CharField(
        _("username"),
        max_length=50,
        unique=True,
        validators=[RegexValidator(r"^[\w.@+-]+\Z", _("Letters, digits and . @ + - _ only.")), check_username],
    )
    nickname = models.CharField(_("nickname"), max_length=50, blank=True)
    phone = models.CharField(_("phone"), max_length=30, blank=True)
    roles = models.ManyToManyField(Role, related_name="users", blank=True, verbose_name=_("roles"))
    user_groups = models.ManyToManyField(UserGroup, related_name="users", blank=True, verbose_name=_("user groups"))
    language = models.CharField(_("language"), max_length=10, blank=True)  # "" follows the browser
    heard_language = models.CharField(max_length=10, blank=True, editable=False)  # what the browser spoke last
    time_zone = models.CharField(_("time zone"), max_length=50, blank=True)
    theme = models.CharField(_("theme"), max_length=5, blank=True)  # "" follows the system; light, dark
    refresh_s = models.PositiveSmallIntegerField(_("refresh interval (s)"), default=5)
    root_allowed = models.BooleanField(default=False, editable=False)  # by an administrator: may switch it on
    root_inside = models.BooleanField(default=False, editable=False)  # by the person: forms offer it
    annotator_keys = models.JSONField(default=dict, blank=True, editable=False)  # {act: [key, …]}, what differs
    guide = models.CharField(max_length=6, choices=Guide, blank=True, default=Guide.AUTO, editable=False)
    must_change_password = models.BooleanField(default=False)  # another person knows the password
    awaiting = models.BooleanField(default=False, editable=False)  # registered, not let in yet
    deleted_at = models.DateTimeField(null=True, editable=False)  # the name stays taken, the facts are gone
    first = models.BooleanField(default=False, editable=False)  # the first administrator: only its password changes

    objects = PeopleManager()  # type: ignore[misc]  # Django's own is declared for the class alone

    class Meta(AbstractUser.Meta):
        constraints = [models.UniqueConstraint(Lower("username"), name="username_once_in_any_case")]

    def __str__(self) -> str:
        return self.nickname or self.username

    @property
    def uses_root(self) -> bool:
        """Whether their jobs may be root inside: an administrator allows it, and they switched it on."""
        return self.root_allowed and self.root_inside

    def get_full_name(self) -> str:
        """Nickname and username, where two people may have the same nickname: "Rosa (rosa.w)"."""
        if not self.nickname or self.nickname.lower() == self.username.lower():
            return self.nickname or self.username
        return f"{self.nickname} ({self.username})"

    def actions(self) -> frozenset[Action]:
        """Everything this person may do, from own and group roles; read once per instance."""
        cached: frozenset[Action] | None = self.__dict__.get("_actions")
        if cached is None:
            cached = self.granted() if self.is_active else frozenset()
            self.__dict__["_actions"] = cached
        return cached

    def granted(self) -> frozenset[Action]:
        """What the account may do once it is active; asks the database unless its roles were prefetched."""
        if self.is_superuser:
            return frozenset(Action)
        if self.pk is None:
            return frozenset()
        if prefetched := self._prefetched_roles():
            return frozenset[Action]().union(*(role.allows() for role in prefetched))
        return known_actions(name for (actions,) in _ACTIONS(self.pk) for name in actions)

    def _prefetched_roles(self) -> list[Role]:
        """Own roles and those of groups, where a list read them with the account; empty: not prefetched, or none."""
        lists = vars(self)
        if "own_groups" in lists:  # see `with_rights`
            return [*lists["own_roles"], *(role for group in lists["own_groups"] for role in group.own_roles)]
        cache: dict[str, Any] = getattr(self, "_prefetched_objects_cache", {})
        if not {"roles", "user_groups"} <= cache.keys():
            return []
        groups = cache["user_groups"]
        if any("roles" not in getattr(group, "_prefetched_objects_cache", {}) for group in groups):
            return []
        return [*cache["roles"], *(role for group in groups for role in group.roles.all())]

    def can(self, action: str) -> bool:
        """Whether any role allows `action` at all (rows are filtered apart, by `visible_to`)."""
        return action in self.actions()

    def require(self, action: str) -> None:
        """Refuse with a message when no role allows `action`.

        Raises:
            NotAllowed: with the sentence that tells whom to ask.
        """
        if self.can(action):
            return
        if not self.actions():
            raise NoRights(
                _("Your account has no permissions yet. Ask an administrator for a role."), needs=str(action)
            )
        raise NotAllowed(_("Your role does not permit this. Ask an administrator if you need it."), needs=str(action))

    def forget_actions(self) -> None:
        """Forget the cached actions, so that roles are read again."""
        self.__dict__.pop("_actions", None)

    @property
    def runs_admin(self) -> bool:
        """Whether Django's admin site is open to this person: only with every action of an administrator."""
        return self.actions() >= ADMIN_ONLY

    def has_perm(self, perm: str, obj: Model | None = None) -> bool:
        """Answer Django's permission checks, which guard only its admin site, by `runs_admin`."""
        return self.runs_admin

    def has_module_perms(self, app_label: str) -> bool:
        return self.runs_admin

    @property
    def speaks(self) -> str:
        """The language for messages to this person: the chosen one, else their browser's, else the platform's."""
        return self.language or self.heard_language or settings.LANGUAGE_CODE

    @property
    def state(self) -> str:
        """disabled, no_rights or active, as the chip of this account shows it."""
        if not self.is_active:
            return "awaiting" if self.awaiting else "disabled"
        return "active" if self.actions() else "no_rights"

    @property
    def sees_everything(self) -> bool:
        """Whether the person sees every tenant's rows, as operators do."""
        return self.can(Action.TASKS_MANAGE)


class ApiToken(models.Model):
    """A script's key: hashed, scoped, expiring. The secret itself is shown once and never stored."""

    class Scope(models.TextChoices):
        READ = "read", _("Read only")
        WRITE = "write", _("Read and write")

    user = models.ForeignKey(User, models.CASCADE, related_name="api_tokens")
    name = models.CharField(_("name"), max_length=50)
    prefix = models.CharField(max_length=12, db_index=True)  # shown in lists, finds the row
    digest = models.CharField(max_length=64, unique=True)  # sha256 of the whole token
    scope = models.CharField(max_length=5, choices=Scope, default=Scope.WRITE)
    created_at = models.DateTimeField(default=now)
    expires_at = models.DateTimeField(null=True, blank=True)  # None: never
    last_used_at = models.DateTimeField(null=True, blank=True)

    objects = OwnRowsQuerySet.as_manager()

    class Meta:
        ordering = ["-created_at"]

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"


class OneTimeLink(models.Model):
    """A link that works once: the first administrator's, or a password reset."""

    class Purpose(models.TextChoices):
        FIRST_ADMIN = "first_admin", _("First administrator")
        PASSWORD = "password", _("Set a password")

    purpose = models.CharField(max_length=12, choices=Purpose)
    user = models.ForeignKey(User, models.CASCADE, null=True, blank=True)
    digest = models.CharField(max_length=64, unique=True)
    created_at = models.DateTimeField(default=now)
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True, blank=True)


class IdempotencyRecord(models.Model):
    """The answer given to a request with an `Idempotency-Key`; see aiplatform.lib.idempotency."""

    user = models.ForeignKey(User, models.CASCADE, related_name="+")
    key = models.CharField(max_length=100)
    digest = models.CharField(max_length=64)  # sha256 of method, path and body
    status = models.PositiveSmallIntegerField(default=0)  # 0: not answered yet
    body = models.JSONField(null=True)
    created_at = models.DateTimeField(default=now, db_index=True)
    holder = models.CharField(max_length=100, blank=True)  # who works on the answer now, see lib.claims
    renewed_at = models.DateTimeField(null=True, blank=True)
    tries = models.PositiveSmallIntegerField(default=0)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "key"], name="idempotency_key_once")]

    def __str__(self) -> str:
        return self.key
