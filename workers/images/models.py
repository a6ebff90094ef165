"""Tables of images: engines, what people saved on top of them, and which job uses which."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.timezone import now
from django.utils.translation import gettext_lazy as _

from aiplatform.lib.message_field import MessageField
from aiplatform.lib.titles import TITLE
from workers.core.models import Job
from workers.images.querysets import ImageQuerySet, NodeCopyQuerySet, RegistryLoginQuerySet


class State(models.TextChoices):
    NEW = "new", _("Not built yet")
    BUILDING = "building", _("Building")
    SAVING = "saving", _("Saving")
    LOOKING = "looking", _("Resolving")
    READY = "ready", _("Ready")
    FAILED = "failed", _("Failed")


class Visibility(models.TextChoices):
    PRIVATE = "private", _("Private")
    GROUP = "group", _("My groups")
    PUBLIC = "public", _("Public")


class Engine(models.Model):
    """A folder with a Python and packages, built once for what it is made of; engines of many people may be one.

    `digest` names requirements and the exact Python. Once it is ready its files never change.
    """

    digest = models.CharField(max_length=64, unique=True)
    requirements = models.TextField(blank=True)
    with_platform = models.BooleanField(default=True)  # sees the platform's own packages, torch among them
    python = models.CharField(max_length=20)  # "3.11.7"
    state = models.CharField(max_length=10, choices=State, default=State.NEW, editable=False)
    message = MessageField()  # why it failed
    facts = models.JSONField(default=dict)  # python, torch, cuda, packages, as its builder found them
    size_bytes = models.PositiveBigIntegerField(default=0)
    job = models.ForeignKey(Job, models.SET_NULL, null=True, blank=True, related_name="+")  # the newest that builds it
    created_at = models.DateTimeField(default=now)

    def __str__(self) -> str:
        return self.digest[:12]


class RegistryLogin(models.Model):
    """Credentials of a registry of container images. The password is kept sealed and never shown again."""

    host = models.CharField(_("registry"), max_length=255)  # as it stands before the first slash of its images
    username = models.CharField(_("username"), max_length=200, blank=True)  # "": nobody signs in, only `ca` counts
    secret = models.TextField(blank=True, editable=False)  # {"password"}, see aiplatform.lib.sealed
    ca = models.TextField(_("certificate authority"), blank=True)  # PEM, believed besides the machine's own
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="registry_logins")
    visibility = models.CharField(_("visible to"), max_length=8, choices=Visibility, default=Visibility.PRIVATE)
    created_at = models.DateTimeField(default=now)
    tested_at = models.DateTimeField(null=True, blank=True)
    message = MessageField()  # why the last test failed; none where it went well

    objects = RegistryLoginQuerySet.as_manager()

    class Meta:
        ordering = ["host", "username", "pk"]
        constraints = [
            models.UniqueConstraint(fields=["owner", "host", "username"], name="registry_login_once_per_owner")
        ]

    def __str__(self) -> str:
        return f"{self.username}@{self.host}" if self.username else self.host


class Image(models.Model):
    """What a job's programs come from: an engine, layers that people saved on top of one, or a container image."""

    class Kind(models.TextChoices):
        ENGINE = "engine", _("Engine")
        SAVED = "saved", _("Saved workspace")
        CONTAINER = "container", _("Container image")

    class Source(models.TextChoices):
        LOCAL = "local", _("On nodes already")
        HUB = "hub", _("Docker Hub")
        REGISTRY = "registry", _("Other registry")
        SAVED = "saved", _("Saved from a job")

    class Policy(models.TextChoices):
        PINNED = "pinned", _("The digest found when it was added")
        NEWEST = "newest", _("Latest of its tag, resolved for each new job")

    kind = models.CharField(max_length=10, choices=Kind)
    name = models.CharField(_("name"), max_length=100, validators=[TITLE])
    tag = models.CharField(_("tag"), max_length=50, blank=True, validators=[TITLE])
    description = models.CharField(_("description"), max_length=500, blank=True)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, null=True, blank=True, related_name="images")
    visibility = models.CharField(_("visible to"), max_length=8, choices=Visibility, default=Visibility.PRIVATE)
    built_in = models.CharField(max_length=20, blank=True, editable=False)  # of services.catalog; nobody owns it
    engine = models.ForeignKey(Engine, models.PROTECT, null=True, blank=True, related_name="images")
    created_at = models.DateTimeField(default=now)
    # what a saved image adds
    parent = models.ForeignKey("self", models.PROTECT, null=True, blank=True, related_name="children")
    job = models.ForeignKey(Job, models.SET_NULL, null=True, blank=True, related_name="+")  # whose box was saved
    state = models.CharField(max_length=10, choices=State, blank=True, editable=False)  # "": its engine's
    message = MessageField()
    sha256 = models.CharField(max_length=64, blank=True)  # of the packed layer
    size_bytes = models.PositiveBigIntegerField(default=0)  # packed
    unpacked_bytes = models.PositiveBigIntegerField(default=0)
    files = models.PositiveBigIntegerField(default=0)
    left_out = models.JSONField(default=list)  # names of what was not taken along
    #: whom at most it may be shown to, because of whom the image below belongs to; see services.below
    widest = models.CharField(max_length=8, choices=Visibility, default=Visibility.PUBLIC, editable=False)
    # what a container image adds
    source = models.CharField(_("source"), max_length=10, choices=Source, blank=True)
    reference = models.CharField(_("reference"), max_length=300, blank=True)  # see containers.reference
    digest = models.CharField(max_length=80, blank=True)  # what its tag named when it was looked at last
    login = models.ForeignKey(RegistryLogin, models.PROTECT, null=True, blank=True, related_name="images")
    policy = models.CharField(_("version policy"), max_length=8, choices=Policy, default=Policy.PINNED)
    facts = models.JSONField(default=dict)  # os, architecture, created, python, torch, cuda, as it says of itself
    # who saves it now, see aiplatform.lib.claims
    holder = models.CharField(max_length=200, blank=True, editable=False)
    renewed_at = models.DateTimeField(null=True, blank=True, editable=False)
    tries = models.PositiveIntegerField(default=0, editable=False)

    objects = ImageQuerySet.as_manager()

    class Meta:
        ordering = ["-pk"]
        constraints = [
            models.UniqueConstraint(fields=["owner", "name", "tag"], name="image_name_once_per_owner"),
            models.UniqueConstraint(fields=["built_in"], condition=~Q(built_in=""), name="image_built_in_once"),
        ]

    def __str__(self) -> str:
        return f"{self.name}:{self.tag}" if self.tag else self.name

    @property
    def status(self) -> State:
        """How far it is: its own state, an engine's is that of the engine."""
        if self.kind != self.Kind.ENGINE:
            return State(self.state)
        return State(self.engine.state) if self.engine else State.NEW

    @property
    def is_saved(self) -> bool:
        """Whether it was saved from a job, as layers or as a container image."""
        return self.kind == self.Kind.SAVED or self.source == self.Source.SAVED

    @property
    def status_word(self) -> str:
        """The state for users; an image of the platform is never built before its first use."""
        return str(_("Built in") if self.built_in and self.status == State.NEW else self.status.label)

    @property
    def why(self) -> str:
        """Why it failed."""
        return str(self.message or (self.engine.message if self.engine else ""))

    @property
    def total_bytes(self) -> int:
        """What it takes on disk: an engine's folder, or the packed layer."""
        return self.size_bytes if self.kind != self.Kind.ENGINE else self.engine.size_bytes if self.engine else 0

    @property
    def contents(self) -> dict[str, Any]:
        """Facts by name: python, torch, cuda, packages, architecture, as far as they are known."""
        return self.engine.facts if self.kind != self.Kind.CONTAINER and self.engine else self.facts


class ImageUse(models.Model):
    """A job and the image that it runs in. `boxed`: with its own writable layer, which is stored on one node."""

    job = models.OneToOneField(Job, models.CASCADE, primary_key=True, related_name="image_use")
    image = models.ForeignKey(Image, models.SET_NULL, null=True, related_name="uses")
    engine = models.ForeignKey(Engine, models.PROTECT, null=True, related_name="uses")  # from its first start on
    name = models.CharField(max_length=160)  # also after the image is gone
    digest = models.CharField(max_length=80, blank=True)  # of a container image: the same in every attempt
    message = MessageField()  # why the server could not find out the digest; the job's next start tells it
    boxed = models.BooleanField(default=False)
    node = models.CharField(max_length=100, blank=True)  # where the box lies; "": nowhere yet
    size_bytes = models.PositiveBigIntegerField(default=0)  # of the box, when it was last measured
    measured_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return self.name


class NodeCopy(models.Model):
    """A container image on one machine: being fetched from its registry, there, or failed to come."""

    image = models.ForeignKey(Image, models.CASCADE, related_name="copies")
    digest = models.CharField(max_length=80)
    node = models.CharField(max_length=100)
    state = models.CharField(max_length=10, choices=State, default=State.NEW, editable=False)
    message = MessageField()  # why it failed
    done_bytes = models.PositiveBigIntegerField(default=0)
    total_bytes = models.PositiveBigIntegerField(default=0)
    changed_at = models.DateTimeField(default=now)
    # who fetches it now, see aiplatform.lib.claims
    holder = models.CharField(max_length=200, blank=True, editable=False)
    renewed_at = models.DateTimeField(null=True, blank=True, editable=False)
    tries = models.PositiveIntegerField(default=0, editable=False)

    objects = NodeCopyQuerySet.as_manager()

    class Meta:
        ordering = ["node", "pk"]
        constraints = [models.UniqueConstraint(fields=["image", "digest", "node"], name="container_copy_once_per_node")]

    def __str__(self) -> str:
        return f"{self.image_id} on {self.node}"
