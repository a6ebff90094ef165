from .clusters import Membership, VirtualCluster
from .jobs import Allocation, Attempt, Job, JobEvent, MetricPoint
from .nodes import Device, Lease, Node

__all__ = [
    "Allocation",
    "Attempt",
    "Device",
    "Job",
    "JobEvent",
    "Lease",
    "Membership",
    "MetricPoint",
    "Node",
    "VirtualCluster",
]
