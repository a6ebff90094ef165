"""Tables of pictures that came back."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import models
from django.utils.timezone import now
from django.utils.translation import gettext_lazy as _


class ServiceSample(models.Model):
    """An image with predictions of a service, or of a device of a group, reported by a user or selected by a rule."""

    class Why(models.TextChoices):
        SOMEBODY = "", _("A user")
        LOW_SCORE = "low_score", _("Low confidence")
        CHANCE = "chance", _("Chance level")
        DIFFERING = "differing", _("Model differences")

    service = models.ForeignKey("inference.Service", models.CASCADE, null=True, related_name="samples")
    group = models.ForeignKey("inference.EdgeGroup", models.CASCADE, null=True, related_name="samples")
    device = models.CharField(max_length=100, blank=True)  # of the group, which answered it
    sha256 = models.CharField(max_length=64)
    kind = models.CharField(max_length=5)  # a Pillow format, by content
    width = models.PositiveIntegerField()  # upright
    height = models.PositiveIntegerField()
    size_bytes = models.PositiveIntegerField()
    model_name = models.CharField(max_length=130)  # which version answered
    answers = models.JSONField(default=list)  # what it said, as `predict` says it
    note = models.CharField(max_length=500, blank=True)
    why = models.CharField(max_length=10, blank=True, choices=Why)  # the rule that kept it; "": somebody
    dataset = models.ForeignKey("datasets.Dataset", models.SET_NULL, null=True, related_name="+")  # where it went
    by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    at = models.DateTimeField(default=now)
    until: datetime  # when it goes; set by samples.waiting
    boxes: list[dict[str, Any]]  # predicted boxes; set by samples.shown

    class Meta:
        ordering = ["-pk"]
        constraints = [
            models.UniqueConstraint(fields=["service", "sha256"], name="service_sample_once"),
            models.UniqueConstraint(fields=["group", "sha256"], name="edge_sample_once"),
            models.CheckConstraint(
                condition=models.Q(service=None) ^ models.Q(group=None), name="sample_of_a_service_or_a_group"
            ),
        ]

    def __str__(self) -> str:
        return self.sha256[:12]

    @property
    def summary(self) -> str:
        """Return the predicted classes and their counts, the three most frequent: "RBC ×12, WBC"."""
        counts = Counter(str(answer.get("name", ""))[:50] for answer in self.answers if answer.get("name"))
        return ", ".join(f"{name} ×{count}" if count > 1 else name for name, count in counts.most_common(3))

    @property
    def file(self) -> Path:
        root = Path(settings.DATA_ROOT)
        if self.service_id is None:
            return root / "edge" / "samples" / str(self.group_id) / self.sha256
        return root / "services" / str(self.service_id) / "samples" / self.sha256
