"""Toys of a user."""

from __future__ import annotations

from typing import Self

from django.conf import settings
from django.db import models
from django.utils.timezone import now

from accounts.access.querysets import OwnedQuerySet
from accounts.models import User
from aiplatform.lib.errors import NameTaken
from aiplatform.lib.titles import TITLE


class ToyQuerySet(OwnedQuerySet):
    visibility_path = "visibility"

    def for_list(self) -> Self:
        return self.select_related("owner")


class Toy(models.Model):
    class Visibility(models.TextChoices):
        PRIVATE = "private", "Only me"
        PUBLIC = "public", "All users"

    name = models.CharField(max_length=40, validators=[TITLE])
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.DO_NOTHING, related_name="+")
    visibility = models.CharField(max_length=8, choices=Visibility, default=Visibility.PRIVATE)
    wheels = models.PositiveSmallIntegerField(default=4)
    created_at = models.DateTimeField(default=now)

    objects = ToyQuerySet.as_manager()

    class Meta:
        app_label = "toys"

    def __str__(self) -> str:
        return self.name


def create(*, user: User, name: str, wheels: int = 4, visibility: str = "private") -> Toy:
    """Create a toy.

    Raises:
        NameTaken: the user has one of this name.
    """
    if Toy.objects.filter(owner=user, name=name).exists():
        raise NameTaken(f"You already have a toy “{name}”.")
    return Toy.objects.create(owner=user, name=name, wheels=wheels, visibility=visibility)


def change(toy: Toy, **values: object) -> None:
    """Change a toy; what is not given stays."""
    Toy.objects.filter(pk=toy.pk).update(**values)
