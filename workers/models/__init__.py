from .clusters import ClusterDevice, ClusterGroup, JobLimit, Membership, VirtualCluster
from .jobs import Allocation, Attempt, Job, JobEvent, MetricPoint
from .nodes import Device, JoinToken, Lease, Node, NodeEvent

__all__ = [
    "Allocation",
    "Attempt",
    "ClusterDevice",
    "ClusterGroup",
    "Device",
    "Job",
    "JobEvent",
    "JobLimit",
    "JoinToken",
    "Lease",
    "Membership",
    "MetricPoint",
    "Node",
    "NodeEvent",
    "VirtualCluster",
]
