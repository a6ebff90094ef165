"""What machines and clusters did, sampled: fine for an hour, by the minute for a day, by ten minutes for a month."""

from __future__ import annotations

from django.db import models

from workers.core.models.clusters import VirtualCluster
from workers.core.models.nodes import Node
from workers.core.querysets import MachineQuerySet, OfClusterQuerySet


class NodeSample(models.Model):
    """A machine over `step` seconds from `at` on; percentages are means of 0 to 100, None where nothing was known."""

    node = models.ForeignKey(Node, models.CASCADE, related_name="samples")
    step = models.PositiveSmallIntegerField()  # 10, 60 or 600
    at = models.DateTimeField()
    cpu = models.FloatField(null=True)
    memory = models.FloatField(null=True)
    disk = models.FloatField(null=True)  # used
    net_in = models.FloatField(null=True)  # bytes per second
    net_out = models.FloatField(null=True)
    gpus = models.FloatField(default=0.0)
    gpus_held = models.FloatField(default=0.0)  # cards given to jobs, parts of a card count as parts
    gpu_util = models.FloatField(null=True)  # mean over the cards
    gpu_memory = models.FloatField(null=True)

    objects = MachineQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["node", "step", "at"], name="node_sample_once")]
        indexes = [models.Index(fields=["step", "at"], name="node_samples")]

    def __str__(self) -> str:
        return f"{self.node} {self.at:%H:%M:%S}"


class ClusterSample(models.Model):
    """A virtual cluster over `step` seconds from `at` on, as means."""

    cluster = models.ForeignKey(VirtualCluster, models.CASCADE, related_name="samples")
    step = models.PositiveSmallIntegerField()
    at = models.DateTimeField()
    gpus = models.FloatField(default=0.0)  # cards its jobs hold
    running = models.FloatField(default=0.0)
    waiting = models.FloatField(default=0.0)

    objects = OfClusterQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["cluster", "step", "at"], name="cluster_sample_once")]
        indexes = [models.Index(fields=["step", "at"], name="cluster_samples")]

    def __str__(self) -> str:
        return f"{self.cluster} {self.at:%H:%M:%S}"
