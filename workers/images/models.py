"""Tables of images: engines, what people saved on top of them, and which job uses which."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.timezone import now
from django.utils.translation import gettext_lazy as _

from aiplatform.lib.message_field import MessageField
from aiplatform.lib.titles import TITLE
from workers.images.querysets import ImageQuerySet
from workers.models import Job


class State(models.TextChoices):
    NEW = "new", _("Not built yet")
    BUILDING = "building", _("Being built")
    SAVING = "saving", _("Being saved")
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


class Image(models.Model):
    """What a job's programs come from: an engine, or layers that people saved on top of one."""

    class Kind(models.TextChoices):
        ENGINE = "engine", _("Engine")
        SAVED = "saved", _("Saved environment")

    kind = models.CharField(max_length=8, choices=Kind)
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
        """How far it is: a saved one's own state, else that of its engine."""
        if self.kind == self.Kind.SAVED:
            return State(self.state)
        return State(self.engine.state) if self.engine else State.NEW

    @property
    def status_word(self) -> str:
        return str(self.status.label)

    @property
    def why(self) -> str:
        """Why it failed."""
        return str(self.message or (self.engine.message if self.engine else ""))

    @property
    def total_bytes(self) -> int:
        """What it takes on disk: an engine's folder, or the packed layer."""
        return self.size_bytes if self.kind == self.Kind.SAVED else self.engine.size_bytes if self.engine else 0


class ImageUse(models.Model):
    """A job and the image that it runs in. `boxed`: with a writable layer of its own, which lies on one machine."""

    job = models.OneToOneField(Job, models.CASCADE, primary_key=True, related_name="image_use")
    image = models.ForeignKey(Image, models.SET_NULL, null=True, related_name="uses")
    engine = models.ForeignKey(Engine, models.PROTECT, null=True, related_name="uses")  # from its first start on
    name = models.CharField(max_length=160)  # also after the image is gone
    boxed = models.BooleanField(default=False)
    node = models.CharField(max_length=100, blank=True)  # where the box lies; "": nowhere yet
    size_bytes = models.PositiveBigIntegerField(default=0)  # of the box, when it was last measured
    measured_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return self.name
