"""The texts of every message about jobs, machines and cards that rows keep as code and facts.

A code stays for as long as rows may hold it; a fact may be added, not renamed. Spans are seconds, memory is MiB.
"""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext_lazy

from aiplatform.lib import wording
from aiplatform.lib.wording import Show, Wording, counted, hours, labelled, listed, memory, moment, nested, number, size
from workers.core import kinds
from workers.core.models import Severity
from workers.core.states import Reason
from workers.core.wait_reasons import WAIT
from workers.resources.monitoring import rules

_SIGNALS = {
    "SIGSEGV": _("a segmentation fault"),
    "SIGABRT": _("an abort"),
    "SIGBUS": _("a bus error"),
    "SIGFPE": _("an arithmetic fault"),
    "SIGILL": _("an illegal instruction"),
}

#: What is wanted of a job, by whom, and how far it came.
LIFECYCLE = {
    "reason": Wording("%(reason)s", reason=labelled("reason", lambda value: Reason(value).label)),
    "queued": _("Queued."),
    "placed": Wording(
        ngettext_lazy("Placed on %(nodes)s.", "Placed together on %(nodes)s.", "count"),
        nodes=listed,
        count=counted("nodes"),
    ),
    "assigned": _("Devices assigned."),
    "launched": _("Starting."),
    "started": _("The program is running."),
    "paused": _("Paused: memory is kept, computation is suspended."),
    "continued": _("Continued."),
    "stopping": _("Stopping."),
    "finishing": _("Finishing; the result is kept."),
    "making_room": _("Preempted by more important jobs."),
    "exited": _("Finished (exit code 0)."),
    "failed": _("The program failed."),
    "finished_early": _("Finished early; the result is kept."),
    "finished_by_loss": Wording(_("Finished early; the last saved state is the result. %(why)s"), why=nested),
    "suspended": _("Saved a checkpoint and waits for devices."),
    "lost": _("Lost."),
    "requeued": _("Requeued."),
    "requeued_elsewhere": _("Requeued, to start on another node."),
    "requeued_same": _("Requeued, to start on %(node)s when it is back."),
    "requeued_whole": _("Requeued, to restart on all nodes."),
    "restored": _("Requeued to continue from a checkpoint."),
    "pause_requested": _("Pause requested."),
    "continue_requested": _("Resume requested."),
    "finish_requested": _("Early finish requested."),
    "stop_requested": _("Stop requested."),
    "force_requested": _("Force stop requested."),
    "force_unheard": Wording(
        _(
            "Force stop requested, but %(nodes)s has not responded for %(seconds)s s. Nothing can be stopped "
            "there until it responds; its devices stay allocated."
        ),
        nodes=listed,
        seconds=number,
    ),
    "approval_requested": _("Waiting for approval."),
    "approved": _("Approved."),
    "approved_because": _("Approved: %(word)s"),
    "refused": _("The start was rejected. Ask a cluster administrator for the reason."),
    "refused_because": _("The start was rejected: %(word)s"),
    "follows": Wording(_("Depends on jobs %(jobs)s now."), jobs=listed),
    "follows_none": _("No dependencies any more."),
    "followed_failed": _("Job %(job)s did not complete, so this job was not started. Restore that job, then this one."),
    "outputs_gone": _(
        "The outputs of job %(job)s, which this job reads, no longer exist. Run that job again, then restore this one."
    ),
    "priority_changed": _("Priority changed from %(old)s to %(new)s."),
    "more_time_requested": Wording(_("%(hours)s h more requested."), hours=hours("span_s")),
    "more_time_granted": Wording(_("%(hours)s h more granted."), hours=hours("span_s")),
    "more_time_granted_because": Wording(_("%(hours)s h more granted: %(word)s"), hours=hours("span_s")),
    "more_time_denied": _("Request for more time denied."),
    "more_time_denied_because": _("Request for more time denied: %(word)s"),
    "time_nearly_up": Wording(_("The maximum run time of %(hours)s h is almost reached."), hours=hours("limit_s")),
    "idle": Wording(_("The GPUs were idle for %(hours)s h."), hours=hours("idle_s", 1)),
    "idle_ends": Wording(
        _("The GPUs were idle for %(hours)s h. The job is stopped if they stay idle."), hours=hours("idle_s", 1)
    ),
    "suspend_requested": _("Requested to save a checkpoint and release its GPUs."),
    "pause_nearly_over": Wording(
        _(
            "The job has been paused for almost %(hours)s h, the limit of its cluster. Continue it, otherwise "
            "it is stopped."
        ),
        hours=hours("limit_s"),
    ),
    "pause_nearly_over_saves": Wording(
        _(
            "The job has been paused for almost %(hours)s h, the limit of its cluster. Continue it; otherwise "
            "it saves a checkpoint, releases its GPUs and resumes when you continue it later."
        ),
        hours=hours("limit_s"),
    ),
    "pause_over": Wording(_("The job was paused for %(hours)s h, the limit of its cluster."), hours=hours("limit_s")),
    "result_kept": Wording(_("The earlier result is kept; attempt %(attempt)s failed. %(why)s"), why=nested),
    "after_backup": Wording(
        _("The platform was restored from a backup of %(when)s; later events of the job are unknown."),
        when=moment("made_at"),
    ),
}

#: Work that makes room for other work, and comes back.
PREEMPTION = {
    "room_for_urgent": _("Preempted by job %(job)s, which is urgent."),
    "room_for_guarantee": _("Preempted by job %(job)s: these devices were borrowed from its cluster."),
    "room_for_window": _("Preempted by job %(job)s: these nodes are now reserved for such jobs."),
    "room_for_turn": _("Preempted by job %(job)s, which was queued earlier."),
    "room_for_idle": _(
        "Releases its GPUs for job %(job)s because it is idle. Continue it to resume with its files and packages."
    ),
    "leaves_for_idle": _("Releases its GPUs temporarily for job %(job)s because it is idle."),
    "leaves_for_urgent": _("Leaves its GPUs temporarily for job %(job)s, which is urgent."),
    "leaves_for_guarantee": _("Leaves its GPUs temporarily for job %(job)s, whose cluster owns them."),
    "leaves_for_window": _("Leaves its GPUs temporarily for job %(job)s, for which these nodes are reserved now."),
    "leaves_for_turn": _("Leaves its GPUs temporarily for job %(job)s, which waited longer."),
    "evicted": _(
        "The GPUs run a job of higher priority; the state is kept in the memory of the node and continues "
        "automatically."
    ),
    "stays": Wording(_("Keeps its GPUs: %(why)s"), why=nested),
    "supervisor_too_old": _("The supervisor does not support this."),
    "coming_back": _("The GPUs are free again; the job returns to them."),
    "made_room": _("Preempted; continues from its checkpoint."),
    "made_room_unsaved": _("Preempted; starts from the beginning because it has no checkpoint."),
    "gave_back": _("Saved a checkpoint and released its GPUs. Continue the job to resume from the checkpoint."),
    "gave_back_unsaved": _("Released its GPUs without a checkpoint. Continue the job to start from the beginning."),
    "left_late": _("Did not exit in time and was killed; continues from its newest checkpoint."),
    "left_late_unsaved": _("Did not exit in time and was killed; it starts over, because it had no checkpoint."),
    "stranded": _("Could not be restored onto its GPUs (%(why)s). Continues from its checkpoint."),
    "stranded_unsaved": _("Could not be restored onto its GPUs (%(why)s). Starts from the beginning."),
}

#: How an attempt ended.
ENDS = {
    "no_root_here": _("%(node)s does not support root in the sandbox because of its isolation tier or its kernel."),
    "root_revoked": _("The owner is not allowed to be root inside any more. Clone the job without root inside."),
    "no_cluster": _("You are not a member of a virtual cluster. Ask an administrator to add you to one."),
    "not_a_member": _("You are not a member of %(cluster)s. Ask an administrator to add you."),
    "reservation_owner_gone": _("The program that these GPUs were reserved for has ended."),
    "launch_failed": _("The job could not be started: %(error)s"),
    "shut_out": _(
        "The job user cannot access folder %(path)s on this node and cannot write files. Ask an operator "
        "to grant access to that folder, or for isolation tier 2."
    ),
    "unreadable": _(
        "The job could not be started: jobs run under a separate user, who cannot read %(path)s. Make it "
        "readable for all (chmod -R o+rX), or ask the owner of that folder."
    ),
    "launch_too_long": Wording(
        _("The job could not be started: preparing it took longer than %(seconds)s s."), seconds=number
    ),
    "over_memory": Wording(
        _("Memory limit %(limit)s exceeded: the program used %(held)s. Request more memory."),
        limit=memory("limit_mib"),
        held=memory("held_mib"),
    ),
    "over_disk": Wording(
        _("Disk limit %(limit)s exceeded: the job used %(used)s. Delete files, or request a higher limit."),
        limit=size("limit_bytes"),
        used=size("used_bytes"),
    ),
    "machine_out_of_memory": _("The node ran out of memory and killed the program. Request less, or a larger node."),
    "fault": Wording(
        _("The program was terminated by %(signal)s (%(words)s)."), words=labelled("signal", _SIGNALS.__getitem__)
    ),
    "signal": _("The program was terminated by signal %(signal)s."),
    "exit_code": _("The program exited with code %(code)s. See its log."),
    "disk_full": Wording(
        _("The disk was full while the job ran. %(how)s Free disk space and start it again."), how=nested
    ),
    "rank_ended": _("The process on node rank %(rank)s exited."),
    "rank_ended_so": Wording(_("The process on node rank %(rank)s exited. %(how)s"), how=nested),
    "rank_killed": _("The process on node rank %(rank)s was killed."),
    "not_started_again": Wording(_("%(why)s The endpoint is not restarted."), why=nested),
    "starts_again": Wording(_("%(why)s It restarts in %(seconds)s s."), why=nested),
    "tried_again": Wording(_("%(why)s Next retry in %(seconds)s s (%(number)s of %(most)s)."), why=nested),
    "supervisor_lost": _("The supervisor process of the job was killed."),
    "machine_restarted": _("The node was restarted."),
    "machine_silent": _("Node %(node)s stopped responding."),
    "card_failed": Wording(_("GPU %(card)s of %(node)s failed. %(why)s"), why=nested),
    "mps_lost": _("The MPS daemon of its GPU exited. If programs fail, restore the job."),
    "share_reached": Wording(
        _("Uses %(held)s of GPU %(card)s; its share is %(allowed)s."),
        held=memory("held_mib"),
        allowed=memory("allowed_mib"),
    ),
    "share_exceeded": Wording(
        _("Stopped: used %(held)s of GPU %(card)s, its share is %(allowed)s."),
        held=memory("held_mib"),
        allowed=memory("allowed_mib"),
    ),
}

NODE = {
    "joined": _("Joined from %(address)s."),
    "drained": _("Accepts no new jobs."),
    "undrained": _("Accepts jobs again."),
    "removed": _("Removed from the cluster."),
    "silent": Wording(_("No heartbeat for %(seconds)s s."), seconds=number),
    "unkillable": Wording(
        _("Process %(processes)s of job %(job)s cannot be killed. Restart the node, then resume scheduling."),
        processes=listed,
    ),
    "heard_again": _("Heartbeat received again."),
    "cards_changed": ngettext_lazy(
        "Had %(before)s GPU, now has %(now)s.", "Had %(before)s GPUs, now has %(now)s.", "before"
    ),
    "evictions_allowed": _("Evictions are allowed on this node."),
    "evictions_forbidden": _("Evictions are not allowed on this node any more."),
    "mps_allowed": _("Jobs on shares of its GPUs now run concurrently with MPS."),
    "mps_forbidden": _("No other job uses MPS here."),
    "mps_ended": Wording(_("An MPS daemon exited and was restarted. Jobs that used it: %(jobs)s."), jobs=listed),
    "eviction_proven": Wording(
        _("Verified: %(mib)s MiB left the GPU in %(out)s s and returned in %(back)s s; %(steps)s losses are equal."),
        mib=Show("mib", round),
        out=number("out_s"),
        back=number("back_s"),
    ),
    "eviction_not_proven": _("The verification failed: %(why)s"),
}

#: Why a job on a share of a card takes turns with the others on it.
MPS = {
    "no_program": _("nvidia-cuda-mps-control is not installed. It is part of the utilities of the NVIDIA driver."),
    "no_folder": _("No folder for the MPS daemon: %(error)s."),
    "not_started": _("The MPS daemon did not start: %(error)s"),
    "other_user": _("The MPS daemon still serves jobs of another user. It stops with the last of them."),
    "container": _("Jobs on this node run in containers, which share no memory with an MPS daemon."),
    "simulated": _("GPU %(card)s is simulated."),
    "slice": _("GPU %(card)s is a MIG slice, which is already isolated."),
    "silent": _("The driver does not report whether GPU %(card)s supports MPS."),
    "old_card": _("GPU %(card)s has compute capability %(has)s; MPS needs 3.5."),
    "exclusive": _(
        "GPU %(card)s is in exclusive mode and serves only one process. Reset it with nvidia-smi -c DEFAULT."
    ),
    "full": _("GPU %(card)s already has %(most)s clients of this MPS daemon, the maximum."),
}

CARD = {
    "off_bus": _("The GPU does not respond: it fell off the bus."),
    "driver_hangs": _("The driver hangs."),
    "memory_errors": ngettext_lazy(
        "%(count)s uncorrectable memory error.", "%(count)s uncorrectable memory errors.", "count"
    ),
    "foreign_process": Wording(_("A foreign process runs here: process %(processes)s."), processes=listed),
    "works_again": _("Works again."),
    "not_built_in": _("No longer installed."),
}

#: What owners and those in charge are told.
NEWS = {
    "completed": Wording(_("%(kind)s “%(name)s” completed"), kind=labelled("kind", kinds.label_of)),
    "stopped": Wording(_("%(kind)s “%(name)s” was stopped"), kind=labelled("kind", kinds.label_of)),
    "failed": Wording(_("%(kind)s “%(name)s” failed"), kind=labelled("kind", kinds.label_of)),
    "attempt_failed": Wording(
        _("%(kind)s “%(name)s”: the new attempt failed; the earlier result is kept"),
        kind=labelled("kind", kinds.label_of),
    ),
    "made_room": Wording(
        _("%(kind)s “%(name)s” was preempted and is queued again"), kind=labelled("kind", kinds.label_of)
    ),
    "time_nearly_up": _("“%(job)s” is close to its maximum run time"),
    "ask_for_time": Wording(
        _("The job is stopped at %(hours)s h of run time. Request more time on its page."), hours=hours("limit_s")
    ),
    "idle": _("“%(name)s” holds GPUs without using them"),
    "paused": _("“%(name)s” is paused and holds its GPUs"),
    "pause_over": _("“%(name)s” released its GPUs after a long pause"),
    "share_reached": _("“%(name)s” is using up its share of the GPU"),
    "share_ends": Wording(
        _("Uses %(held)s of GPU %(card)s, allowed are %(allowed)s. The job is stopped at 10 %% above its share."),
        held=memory("held_mib"),
        allowed=memory("allowed_mib"),
    ),
    "approval_requested": Wording(
        _("%(person)s requests to start %(kind)s “%(name)s”"), kind=labelled("kind", kinds.label_of)
    ),
    "approval_where": _("A job in cluster %(cluster)s is waiting for your approval."),
    "approved": Wording(_("%(kind)s “%(name)s” was approved"), kind=labelled("kind", kinds.label_of)),
    "refused": Wording(_("%(kind)s “%(name)s” was denied"), kind=labelled("kind", kinds.label_of)),
    "time_requested": Wording(_("%(person)s requests %(hours)s h more for “%(job)s”"), hours=hours("span_s")),
    "time_granted": _("More time for “%(job)s”: granted"),
    "time_denied": _("More time for “%(job)s”: denied"),
}


def _severity(value: str) -> object:
    return Severity(value).label


#: Titles of alarms; their texts are those of the rules.
ALARMS = {
    "title": Wording(
        "%(severity)s: %(rule)s", severity=labelled("severity", _severity), rule=labelled("rule", rules.label_of)
    ),
    "over": Wording(
        _("Resolved: %(severity)s: %(rule)s"),
        severity=labelled("severity", _severity),
        rule=labelled("rule", rules.label_of),
    ),
    "rule": Wording("%(rule)s", rule=labelled("rule", rules.label_of)),
    "test": _("Test alert"),
    "all": _("All alerts"),
    "affects": _("An alert affects your jobs: %(jobs)s"),
}


def register() -> None:
    """Make all texts known; called once when the app is ready."""
    wording.register("job", LIFECYCLE | PREEMPTION | ENDS)
    wording.register("node", NODE)
    wording.register("card", CARD)
    wording.register("mps", MPS)
    wording.register("news", NEWS)
    wording.register("alarm", ALARMS)
    wording.register("wait", WAIT)
    wording.register("alarm.rule", {key: rule.wording for key, rule in rules.RULES.items()})
