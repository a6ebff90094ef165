from .clusters import Membership, VirtualCluster
from .jobs import Allocation, Attempt, Job, JobEvent, MetricPoint
from .nodes import Device, JoinToken, Lease, Node, NodeEvent

__all__ = [
    "Allocation",
    "Attempt",
    "Device",
    "Job",
    "JobEvent",
    "JoinToken",
    "Lease",
    "Membership",
    "MetricPoint",
    "Node",
    "NodeEvent",
    "VirtualCluster",
]
