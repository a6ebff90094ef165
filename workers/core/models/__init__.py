from .alarms import Alarm, AlarmAddress, AlarmRule, AlarmSilence, Severity
from .clusters import ClusterDevice, ClusterGroup, JobLimit, Membership, VirtualCluster
from .curves import HAS_VALUE, Curve, Figures
from .following import Dependency, JobArray
from .history import ClusterSample, NodeSample
from .jobs import Allocation, Attempt, Job, JobEvent
from .media import MediaItem, MediaSeries, ReportFile
from .nodes import Device, JoinToken, Lease, Node, NodeEvent
from .requests import Approval, TimeRequest
from .resource_groups import ResourceGroup, ResourceWindow

__all__ = [
    "HAS_VALUE",
    "Alarm",
    "AlarmAddress",
    "AlarmRule",
    "AlarmSilence",
    "Allocation",
    "Approval",
    "Attempt",
    "ClusterDevice",
    "ClusterGroup",
    "ClusterSample",
    "Curve",
    "Dependency",
    "Device",
    "Figures",
    "Job",
    "JobArray",
    "JobEvent",
    "JobLimit",
    "JoinToken",
    "Lease",
    "MediaItem",
    "MediaSeries",
    "Membership",
    "Node",
    "NodeEvent",
    "NodeSample",
    "ReportFile",
    "ResourceGroup",
    "ResourceWindow",
    "Severity",
    "TimeRequest",
    "VirtualCluster",
]
