"""Tables of home folders: which folders are shared, and how much a home holds."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from datasets.files.querysets import SharedFolderQuerySet

MAX_PATH_LENGTH = 1000


class SharedFolder(models.Model):
    """A folder of a home that others may read; with whom is in accounts/access/sharing.py.

    The path is shared, with any entry at that path.
    """

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="shared_folders")
    path = models.CharField(max_length=MAX_PATH_LENGTH)  # below the home, as aiplatform.lib.file_names writes it
    created_at = models.DateTimeField(auto_now_add=True)

    objects = SharedFolderQuerySet.as_manager()

    class Meta:
        ordering = ["path"]
        constraints = [models.UniqueConstraint(fields=["owner", "path"], name="folder_shared_once")]

    def __str__(self) -> str:
        return self.path.rsplit("/", 1)[-1]


class HomeChange(models.Model):
    """A rename or deletion that is under way, see datasets/files/journal.py; its row goes when it is over."""

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    path = models.TextField()  # as aiplatform.lib.file_names writes it
    to = models.TextField(blank=True)  # "": deleted
    identity = models.CharField(max_length=50)  # of what stood at the path: "disk:number"
    holder = models.CharField(max_length=200)  # the process, see aiplatform.lib.claims
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return self.path


class HomeUsage(models.Model):
    """How much lay in a person's home when it was last looked through."""

    user = models.OneToOneField(settings.AUTH_USER_MODEL, models.CASCADE, primary_key=True, related_name="home_usage")
    size_bytes = models.PositiveBigIntegerField(default=0)
    files = models.PositiveBigIntegerField(default=0)
    whole = models.BooleanField(default=True)  # False: there was no time to look at everything, it is at least this
    measured_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.user}: {self.size_bytes}"
