"""Machines kept for some kinds of jobs, at certain hours."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from workers.core.models.nodes import Node
from workers.core.querysets import ResourceGroupQuerySet


class ResourceGroup(models.Model):
    """Nodes on which, while a window is open, only jobs of `kinds` start. Without windows it is always open."""

    name = models.CharField(_("name"), max_length=50, unique=True)
    nodes = models.ManyToManyField(Node, related_name="resource_groups", verbose_name=_("nodes"))
    kinds = models.JSONField(_("kinds of jobs"), default=list)  # names of job kinds

    objects = ResourceGroupQuerySet.as_manager()

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class ResourceWindow(models.Model):
    """Hours of a resource group, by the site's clocks. One that ends before it begins ends the next day."""

    group = models.ForeignKey(ResourceGroup, models.CASCADE, related_name="windows")
    weekdays = models.JSONField(default=list)  # on which it begins; 0 is Monday
    begins = models.TimeField()
    ends = models.TimeField()  # equal to `begins`: a whole day

    class Meta:
        ordering = ["pk"]

    def __str__(self) -> str:
        return f"{self.begins:%H:%M}–{self.ends:%H:%M}"
