"""Texts of the codes of `plan.Wait`, `fit.Never` and `held_back.Held`, registered as messages “wait.CODE”."""

from __future__ import annotations

from collections.abc import Mapping

from django.utils.translation import gettext_lazy as _

from aiplatform.lib.wording import Message

WAIT = {
    "new": _("Just queued; scheduled in a moment."),
    "no_cards": _("Waits for GPUs: %(asked)s needed, %(free)s free."),
    "no_share": _("Waits for a share of a GPU: %(asked)s/8 needed, at most %(free)s/8 free on one GPU."),
    "scattered": _(
        "Waits for GPUs on one node: %(asked)s needed, %(free)s free in total but at most %(best)s on one node."
    ),
    "no_cpu": _("Waits for CPU cores on one node: %(asked)s needed, %(free)s of %(total)s free."),
    "no_machine": _("No available node is large enough; the job starts when one comes back."),
    "no_such_tier": _("No available node has an isolation tier from %(least)s to %(most)s, which the image requires."),
    "reserved": _("Resources are free but reserved for job %(job)s, which was queued earlier."),
    "cluster_quota": _(
        "The quota of the cluster is exhausted: %(used)s of %(limit)s GPUs in use, %(asked)s requested."
    ),
    "user_cards": _("Your quota in the cluster is exhausted: %(used)s of %(limit)s GPUs, %(asked)s requested."),
    "guaranteed_cards": _(
        "Only %(limit)s GPUs are not guaranteed to a cluster, %(used)s of them are in use, %(asked)s requested. Make "
        "the job preemptible to borrow the rest."
    ),
    "guaranteed_cores": _(
        "Only %(limit)s CPU slots are not guaranteed to a cluster, %(used)s of them are in use, %(asked)s requested. "
        "Make the job preemptible to borrow the rest."
    ),
    "cluster_cores": _("The cluster quota is used up: %(used)s of %(limit)s CPU slots in use, %(asked)s requested."),
    "user_cores": _("Your share of the cluster is used up: %(used)s of %(limit)s CPU slots, %(asked)s requested."),
    "user_jobs": _("%(running)s of your jobs are running; the cluster allows %(limit)s at a time."),
    "user_environments": _("%(running)s of your workspaces are running; the cluster allows %(limit)s at a time."),
    "making_room": _("Other jobs are being preempted for this job; it starts as soon as the GPUs are free."),
    "nothing_idle": _(
        "The GPUs of your cluster are exhausted (%(used)s of %(limit)s), and no other cluster has %(asked)s idle."
    ),
    "no_idle_cores": _(
        "The CPU slots of your cluster are used up (%(used)s of %(limit)s), and no other cluster has %(asked)s idle."
    ),
    "kept_group": _("The nodes of %(group)s are currently reserved for other kinds of jobs."),
    "paused": _("The job is paused and holds no resources; continue it to queue it again."),
    "backoff": _("Restarts after a delay, because it failed recently."),
    "unapproved": _("Waiting for approval by a cluster administrator."),
    "waits_for_image": _("Waits for the image %(image)s, which job %(job)s builds first."),
    "after_success": _("Starts when job %(job)s has completed."),
    "after_end": _("Starts when job %(job)s has ended."),
    "after_many": _("Starts after %(count)s other jobs; the first is job %(job)s."),
    "array_full": _("The maximum number of jobs of the array is running: %(limit)s."),
    "machine_full": _(
        "Waiting for free resources on node %(node)s, which stores its installed packages. To start elsewhere, "
        "discard the packages on the job page, or start a new job from a saved image."
    ),
    "machine_too_small": _(
        "Node %(node)s stores its installed packages and can never provide the requested resources. Discard the "
        "packages on the job page, or start a new job from a saved image."
    ),
    "machine_drained": _(
        "Node %(node)s stores its installed packages and was drained by an operator. The job starts when the node "
        "accepts jobs again. To start elsewhere, discard the packages on the job page, or start a new job from a "
        "saved image."
    ),
    "machine_silent": _(
        "Node %(node)s stores its installed packages and does not respond. The job starts when the node is back. To "
        "start elsewhere, discard the packages on the job page, or start a new job from a saved image."
    ),
    "machine_removed": _(
        "Node %(node)s stored its installed packages and was removed. Discard the packages on the job page to start "
        "from the image, or start a new job from a saved image."
    ),
    "no_cluster": _("The virtual cluster does not exist any more."),
    "no_root_inside": _("No node that is large enough supports root in the sandbox. Disable it, or ask an operator."),
    "over_cluster_quota": _("Requested GPUs: %(asked)s. Limit of cluster %(cluster)s: %(limit)s."),
    "over_user_cards": _("Requested GPUs: %(asked)s. Limit per user in cluster %(cluster)s: %(limit)s."),
    "over_cluster_cores": _("Requested CPU cores: %(asked)s. Limit of cluster %(cluster)s: %(limit)s CPU slots."),
    "over_user_cores": _("Requested CPU cores: %(asked)s. Limit per user in cluster %(cluster)s: %(limit)s CPU slots."),
    "over_unowned_cards": _(
        "Requested GPUs: %(asked)s. Not guaranteed to a cluster: %(limit)s. Make the job preemptible to borrow the "
        "rest."
    ),
    "over_unowned_cores": _(
        "Requested CPU cores: %(asked)s. CPU slots not guaranteed to a cluster: %(limit)s. Make the job preemptible "
        "to borrow the rest."
    ),
    "no_jobs_allowed": _("%(cluster)s currently runs no jobs."),
    "no_environments_allowed": _("%(cluster)s currently runs no workspaces."),
    "kept_for_others": _("The nodes that are large enough are reserved for other kinds of jobs: %(groups)s."),
    "not_shareable": _("Devices of kind %(kind)s cannot be shared; request whole devices."),
    "count_not_allowed": _("Requested devices per node: %(asked)s. Allowed for devices of kind %(kind)s: %(allowed)s."),
    "distributed_count": _("On several nodes a job uses %(count)s devices of kind %(kind)s per node."),
    "too_little_memory": _("On every GPU this share is smaller than %(asked_mib)s MiB; request a larger share."),
    "too_many_on_a_node": _("Requested GPUs per node: %(asked)s. The largest node has %(best)s."),
    "too_many_nodes": _("%(asked)s nodes requested; only %(nodes)s exist, and not all may be large enough."),
    "too_many_cpus": _("Requested CPU cores: %(asked)s. The largest node has %(best)s CPU slots."),
    "no_such_model": _("No node has a GPU %(model)s. Choose another device type."),
    "image_driver": _(
        "No node has a driver for CUDA %(cuda)s of the image: it needs %(needed)s, the newest is %(newest)s. Choose "
        "another image, or run on the CPU."
    ),
    "image_processor": _("The image was built for %(needed)s CPUs, the nodes have %(there)s. Choose another image."),
    "no_such_card": _("No node has a GPU of this kind. Request 0 GPUs to run on the CPU."),
}


def sentence(code: str, args: Mapping[str, object] | None = None) -> str:
    """Return the text of `code` in the user's language; empty for an empty code."""
    return str(Message(code and f"wait.{code}", args or {}))
