"""Curves of jobs, as far as rows hold them."""

from __future__ import annotations

from django.db import models

from .jobs import Attempt

#: Curves with a finite number among their points, which have `value`, `lowest` and `highest`.
HAS_VALUE = models.Q(highest__gte=models.F("lowest"))


class Figures(models.Model):
    """What the points of one key amount to. They lie in a file, see workers/jobs/output/point_files.py.

    Points may be NaN or infinite: they count, and are left out of `value`, `lowest` and `highest`.
    """

    key = models.CharField(max_length=60)
    count = models.PositiveBigIntegerField()  # points of the file that count
    step = models.BigIntegerField()  # of `value`
    value = models.FloatField()  # of the newest finite point; 0 where there is none
    at = models.DateTimeField()
    lowest = models.FloatField()
    lowest_step = models.BigIntegerField()
    highest = models.FloatField()
    highest_step = models.BigIntegerField()

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return f"{self.key}={self.value} at {self.step}"

    @property
    def has_value(self) -> bool:
        """Whether any of its points is a finite number."""
        return self.highest >= self.lowest


class Curve(Figures):
    """One key of one attempt of a job."""

    attempt = models.ForeignKey(Attempt, models.CASCADE, related_name="curves")
    source = models.CharField(
        max_length=250, blank=True
    )  # "": the program's own report; else whose file, see naming.py

    class Meta:
        constraints = [models.UniqueConstraint(fields=["attempt", "key"], name="curve_once")]
