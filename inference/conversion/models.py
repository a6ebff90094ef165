"""Tables of conversions."""

from __future__ import annotations

from django.db import models

from inference.conversion.converter.variant_catalog import TARGETS
from inference.conversion.querysets import ConversionQuerySet


class Conversion(models.Model):
    """A version converted to some variants, checked on a split of a dataset version. How it runs is `job`."""

    job = models.OneToOneField("workers.Job", models.CASCADE, related_name="conversion")
    version = models.ForeignKey("inference.ModelVersion", models.SET_NULL, null=True, related_name="conversions")
    model_label = models.CharField(max_length=120)  # "cells v2", kept after the version is deleted
    data = models.ForeignKey("datasets.DatasetVersion", models.SET_NULL, null=True, related_name="conversions")
    data_label = models.CharField(max_length=80)
    split = models.CharField(max_length=10, blank=True)  # on which the variants are judged, as of an evaluation
    params = models.JSONField(default=dict)  # targets, calibrate_on, looks, method, max_loss, keep
    fastest = models.CharField(max_length=20, blank=True)  # the variant that is; "": none is faster than the source
    published_attempt = models.PositiveIntegerField(default=0)  # whose outputs hold the variants; 0: none yet

    objects = ConversionQuerySet.as_manager()

    class Meta:
        ordering = ["-pk"]

    def __str__(self) -> str:
        return self.job.name


class ConvertedVariant(models.Model):
    """One variant of a conversion that ended: what it lost, and the version it became."""

    conversion = models.ForeignKey(Conversion, models.CASCADE, related_name="variants")
    target = models.CharField(max_length=20)  # of inference.conversion.converter.variant_catalog
    state = models.CharField(max_length=8)  # accepted, refused, failed
    figures = models.JSONField(default=dict)  # value, loss, agreement, size_bytes, p50_ms, images_per_s
    made = models.ForeignKey("inference.ModelVersion", models.SET_NULL, null=True, related_name="+")

    class Meta:
        ordering = ["pk"]
        constraints = [models.UniqueConstraint(fields=["conversion", "target"], name="converted_variant_once")]

    def __str__(self) -> str:
        target = TARGETS.get(self.target)
        return target.label if target else self.target
