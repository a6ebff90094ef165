"""Tables of evaluations and of the promotion rules that read them."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.timezone import now
from django.utils.translation import gettext_lazy as _

from aiplatform.lib.message_field import MessageField
from aiplatform.lib.titles import TITLE
from datasets.models import DatasetVersion
from inference.evaluation.querysets import EvaluationQuerySet, EvaluationSetQuerySet, PromotionRuleQuerySet
from inference.registry import task_labels
from inference.registry.metric_labels import label_of
from inference.registry.models import Model, ModelVersion, Stage
from workers.core.models import Job

#: Labels of splits to evaluate on; a dataset version may have splits of other names.
SPLIT_LABELS: dict[str, Any] = {
    "test": _("Test"),
    "val": _("Validation"),
    "train": _("Training"),
    "unseen": _("Images it was not trained on"),
    "": _("All images"),
}


class Evaluation(models.Model):
    """A model version evaluated on a split of a dataset version. How it runs is `job`."""

    job = models.OneToOneField(Job, models.CASCADE, related_name="evaluation")
    model_version = models.ForeignKey(ModelVersion, models.SET_NULL, null=True, related_name="evaluations")
    model_label = models.CharField(max_length=120)
    version = models.ForeignKey(DatasetVersion, models.SET_NULL, null=True, related_name="evaluations")
    version_label = models.CharField(max_length=80)
    split = models.CharField(_("split"), max_length=10, blank=True)  # "": all images; "unseen": not learned from
    task = models.CharField(max_length=15)
    params = models.JSONField(default=dict)
    metrics = models.JSONField(default=dict)  # the summary, once judged
    published_attempt = models.PositiveIntegerField(default=0)  # whose outputs hold the results; 0: none yet
    is_scripted = models.BooleanField(default=False, editable=False)  # `script` judged it, not ours
    chosen_threshold = models.FloatField(null=True, editable=False)  # goes before the best F1; see calibration.py

    objects = EvaluationQuerySet.as_manager()

    class Meta:
        ordering = ["-pk"]

    def __str__(self) -> str:
        return self.job.name

    @property
    def split_word(self) -> Any:
        """The label of the split it evaluates on."""
        return SPLIT_LABELS.get(self.split, self.split)


class PromotionRule(models.Model):
    """What an evaluation must show for its version to get an alias or a stage. Rules never change."""

    model = models.ForeignKey(Model, models.CASCADE, related_name="rules")
    metric = models.CharField(max_length=50)
    at_least = models.BooleanField(default=True)  # False: at most, as for losses
    bound = models.FloatField()
    version = models.ForeignKey(DatasetVersion, models.SET_NULL, null=True, related_name="promotion_rules")
    version_label = models.CharField(max_length=80)
    split = models.CharField(max_length=10, blank=True)  # of the evaluation, exactly
    better_than = models.CharField(max_length=50, blank=True)  # an alias; "": none
    gives_alias = models.CharField(max_length=50, blank=True)
    gives_stage = models.CharField(max_length=9, choices=Stage, blank=True)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(default=now)

    objects = PromotionRuleQuerySet.as_manager()

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.CheckConstraint(condition=~Q(gives_alias="") | ~Q(gives_stage=""), name="promotion_gives_something")
        ]

    def __str__(self) -> str:
        return f"{self.metric} {'≥' if self.at_least else '≤'} {self.bound:g}"

    @property
    def condition(self) -> str:
        """The rule with the label of its metric, for pages: "AP50 ≥ 0.8"."""
        return f"{label_of(self.metric)} {'≥' if self.at_least else '≤'} {self.bound:g}"

    @property
    def split_word(self) -> Any:
        """The label of the split of the evaluations that it checks."""
        return SPLIT_LABELS.get(self.split, self.split)


class PromotionVerdict(models.Model):
    """The verdict of a rule on one evaluation; unique, so that a rule acts once."""

    rule = models.ForeignKey(PromotionRule, models.CASCADE, related_name="verdicts")
    evaluation = models.ForeignKey(Evaluation, models.CASCADE, related_name="verdicts")
    attempt = models.PositiveIntegerField()
    promoted = models.BooleanField()
    message = MessageField()
    at = models.DateTimeField(default=now)

    class Meta:
        ordering = ["-pk"]
        constraints = [models.UniqueConstraint(fields=["rule", "evaluation", "attempt"], name="promotion_verdict_once")]

    def __str__(self) -> str:
        return str(self.message)


class EvaluationSet(models.Model):
    """The settings of an evaluation under a name, to start others with."""

    class Visibility(models.TextChoices):
        PRIVATE = "private", _("Private")
        GROUP = "group", _("My groups")
        PUBLIC = "public", _("Public")

    name = models.CharField(_("name"), max_length=50, validators=[TITLE])
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="evaluation_sets")
    description = models.CharField(_("description"), max_length=200, blank=True)
    visibility = models.CharField(_("visible to"), max_length=8, choices=Visibility, default=Visibility.PRIVATE)
    task = models.CharField(max_length=15, choices=task_labels.choices)  # of the models it is for; never changes
    version = models.ForeignKey("datasets.DatasetVersion", models.SET_NULL, null=True, related_name="+")
    version_label = models.CharField(max_length=80, blank=True)  # kept after it is deleted; "": none was named
    split = models.CharField(_("split"), max_length=10, blank=True)  # as evaluations have it, or "auto"
    params = models.JSONField(default=dict)
    # an own script that judges in place of ours, see scripted/
    code = models.ForeignKey("training.CodeSnapshot", models.PROTECT, null=True, related_name="+")
    start_file = models.CharField(max_length=255, blank=True)
    arguments = models.CharField(max_length=2000, blank=True)
    output_path = models.CharField(max_length=255, blank=True)
    image = models.ForeignKey("images.Image", models.SET_NULL, null=True, related_name="+")
    image_label = models.CharField(max_length=160, blank=True)  # kept after it is deleted; "": the platform's own
    # what it asks of the machines
    device_kind = models.CharField(max_length=8, default="gpu")
    device_model = models.CharField(max_length=100, blank=True)
    gpus_per_node = models.PositiveSmallIntegerField(default=0)
    cpus = models.FloatField(default=2.0)
    created_at = models.DateTimeField(default=now)
    updated_at = models.DateTimeField(auto_now=True)

    objects = EvaluationSetQuerySet.as_manager()

    class Meta:
        ordering = ["-pk"]
        constraints = [models.UniqueConstraint(fields=["owner", "name"], name="evaluation_set_name_once_per_owner")]

    def __str__(self) -> str:
        return self.name

    @property
    def is_scripted(self) -> bool:
        return bool(self.start_file)
