"""Tables of templates: stored requests with parameters, their versions, and the jobs that were made of them."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils.timezone import now
from django.utils.translation import gettext_lazy as _

from aiplatform.lib.titles import TITLE
from training.job_templates.querysets import TemplateQuerySet
from training.programs.models import CodeSnapshot
from workers.core.models import Job


class JobTemplate(models.Model):
    """A request under a name, to be used again by its owner and others."""

    class Visibility(models.TextChoices):
        PRIVATE = "private", _("Private")
        GROUP = "group", _("My groups")
        PUBLIC = "public", _("Public")

    name = models.CharField(_("name"), max_length=100, validators=[TITLE])
    description = models.CharField(_("description"), max_length=500, blank=True)
    kind = models.CharField(max_length=20)  # of job; a name in training.programs.request_schemas
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="job_templates")
    visibility = models.CharField(_("visible to"), max_length=8, choices=Visibility, default=Visibility.PRIVATE)
    created_at = models.DateTimeField(default=now)
    updated_at = models.DateTimeField(auto_now=True)

    objects = TemplateQuerySet.as_manager()

    class Meta:
        ordering = ["-pk"]
        constraints = [models.UniqueConstraint(fields=["owner", "name"], name="template_name_once_per_owner")]

    def __str__(self) -> str:
        return self.name

    @property
    def newest(self) -> TemplateVersion:
        """Its newest version; there is always one."""
        return self.versions.select_related("code").order_by("-number")[0]


class TemplateVersion(models.Model):
    """The content of a template at one time; never changed afterwards."""

    template = models.ForeignKey(JobTemplate, models.CASCADE, related_name="versions")
    number = models.PositiveIntegerField()
    request = models.JSONField()  # fields of the kind's API route, with {{ name }} where a parameter goes
    parameters = models.JSONField(default=list)  # [{"name", "default", "about"}]; a default of null has to be given
    code = models.ForeignKey(CodeSnapshot, models.PROTECT, null=True, blank=True, related_name="+")
    made_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    made_at = models.DateTimeField(default=now)

    class Meta:
        ordering = ["template", "-number"]
        constraints = [models.UniqueConstraint(fields=["template", "number"], name="template_version_once")]

    def __str__(self) -> str:
        return f"{self.template} v{self.number}"


class TemplateUse(models.Model):
    """The template that a job was made of."""

    job = models.OneToOneField(Job, models.CASCADE, primary_key=True, related_name="template_use")
    version = models.ForeignKey(TemplateVersion, models.SET_NULL, null=True, related_name="uses")
    name = models.CharField(max_length=120)  # "nightly v2", also after the template is gone

    def __str__(self) -> str:
        return self.name
