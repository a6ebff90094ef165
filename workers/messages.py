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
    "queued": Wording(_("Queued.")),
    "placed": Wording(
        ngettext_lazy("Placed on %(nodes)s.", "Placed together on %(nodes)s.", "count"),
        nodes=listed("nodes"),
        count=counted("nodes"),
    ),
    "assigned": Wording(_("Devices assigned.")),
    "launched": Wording(_("Starting.")),
    "started": Wording(_("The program is running.")),
    "paused": Wording(_("Paused: memory is kept, computation is suspended.")),
    "continued": Wording(_("Continued.")),
    "stopping": Wording(_("Stopping.")),
    "finishing": Wording(_("Finishing; the result is kept.")),
    "making_room": Wording(_("Preempted by more important jobs.")),
    "exited": Wording(_("The program exited by itself.")),
    "failed": Wording(_("The program failed.")),
    "finished_early": Wording(_("Finished early; the result is kept.")),
    "finished_by_loss": Wording(_("Finished early; the last saved state is the result. %(why)s"), why=nested("why")),
    "suspended": Wording(_("Saved a checkpoint and waits for devices.")),
    "lost": Wording(_("Lost.")),
    "requeued": Wording(_("Requeued.")),
    "requeued_elsewhere": Wording(_("Requeued, to start on another node.")),
    "requeued_same": Wording(_("Requeued, to start on %(node)s when it is back.")),
    "requeued_whole": Wording(_("Requeued, to restart on all nodes.")),
    "restored": Wording(_("Requeued to continue from a checkpoint.")),
    "pause_requested": Wording(_("Pause requested.")),
    "continue_requested": Wording(_("Resume requested.")),
    "finish_requested": Wording(_("Early finish requested.")),
    "stop_requested": Wording(_("Stop requested.")),
    "force_requested": Wording(_("Force stop requested.")),
    "force_unheard": Wording(
        _(
            "Force stop requested, but %(nodes)s has not responded for %(seconds)s s. Nothing can be stopped "
            "there until it responds; its devices stay allocated."
        ),
        nodes=listed("nodes"),
        seconds=number("seconds"),
    ),
    "approval_requested": Wording(_("Waiting for approval.")),
    "approved": Wording(_("Approved.")),
    "approved_because": Wording(_("Approved: %(word)s")),
    "refused": Wording(_("The start was rejected. Ask a cluster administrator for the reason.")),
    "refused_because": Wording(_("The start was rejected: %(word)s")),
    "follows": Wording(_("Depends on jobs %(jobs)s now."), jobs=listed("jobs")),
    "follows_none": Wording(_("No dependencies any more.")),
    "followed_failed": Wording(
        _("Job %(job)s did not complete, so this job was not started. Restore that job, then this one.")
    ),
    "outputs_gone": Wording(
        _(
            "The outputs of job %(job)s, which this job reads, no longer exist. Run that job again, then "
            "restore this one."
        )
    ),
    "priority_changed": Wording(_("Priority changed from %(old)s to %(new)s.")),
    "more_time_requested": Wording(_("%(hours)s h more requested."), hours=hours("span_s")),
    "more_time_granted": Wording(_("%(hours)s h more granted."), hours=hours("span_s")),
    "more_time_granted_because": Wording(_("%(hours)s h more granted: %(word)s"), hours=hours("span_s")),
    "more_time_denied": Wording(_("Request for more time denied.")),
    "more_time_denied_because": Wording(_("Request for more time denied: %(word)s")),
    "time_nearly_up": Wording(_("The maximum run time of %(hours)s h is almost reached."), hours=hours("limit_s")),
    "idle": Wording(_("The GPUs were idle for %(hours)s h."), hours=hours("idle_s", 1)),
    "idle_ends": Wording(
        _("The GPUs were idle for %(hours)s h. The job is stopped if they stay idle."), hours=hours("idle_s", 1)
    ),
    "suspend_requested": Wording(_("Requested to save a checkpoint and release its GPUs.")),
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
    "result_kept": Wording(_("The earlier result is kept; attempt %(attempt)s failed. %(why)s"), why=nested("why")),
    "after_backup": Wording(
        _("The platform was restored from a backup of %(when)s; later events of the job are unknown."),
        when=moment("made_at"),
    ),
}

#: Work that makes room for other work, and comes back.
PREEMPTION = {
    "room_for_urgent": Wording(_("Preempted by job %(job)s, which is urgent.")),
    "room_for_guarantee": Wording(_("Preempted by job %(job)s: these devices were borrowed from its cluster.")),
    "room_for_window": Wording(_("Preempted by job %(job)s: these nodes are now reserved for such jobs.")),
    "room_for_turn": Wording(_("Preempted by job %(job)s, which was queued earlier.")),
    "room_for_idle": Wording(
        _("Releases its GPUs for job %(job)s because it is idle. Continue it to resume with its files and packages.")
    ),
    "leaves_for_idle": Wording(_("Releases its GPUs temporarily for job %(job)s because it is idle.")),
    "leaves_for_urgent": Wording(_("Leaves its GPUs temporarily for job %(job)s, which is urgent.")),
    "leaves_for_guarantee": Wording(_("Leaves its GPUs temporarily for job %(job)s, whose cluster owns them.")),
    "leaves_for_window": Wording(
        _("Leaves its GPUs temporarily for job %(job)s, for which these nodes are reserved now.")
    ),
    "leaves_for_turn": Wording(_("Leaves its GPUs temporarily for job %(job)s, which waited longer.")),
    "evicted": Wording(
        _(
            "The GPUs run a job of higher priority; the state is kept in the memory of the node and continues "
            "automatically."
        )
    ),
    "stays": Wording(_("Keeps its GPUs: %(why)s"), why=nested("why")),
    "supervisor_too_old": Wording(_("The supervisor does not support this.")),
    "coming_back": Wording(_("The GPUs are free again; the job returns to them.")),
    "made_room": Wording(_("Preempted; continues from its checkpoint.")),
    "made_room_unsaved": Wording(_("Preempted; starts from the beginning because it has no checkpoint.")),
    "gave_back": Wording(
        _("Saved a checkpoint and released its GPUs. Continue the job to resume from the checkpoint.")
    ),
    "gave_back_unsaved": Wording(
        _("Released its GPUs without a checkpoint. Continue the job to start from the beginning.")
    ),
    "left_late": Wording(_("Did not exit in time and was killed; continues from its newest checkpoint.")),
    "left_late_unsaved": Wording(
        _("Did not exit in time and was killed; it starts over, because it had no checkpoint.")
    ),
    "stranded": Wording(_("Could not be restored onto its GPUs (%(why)s). Continues from its checkpoint.")),
    "stranded_unsaved": Wording(_("Could not be restored onto its GPUs (%(why)s). Starts from the beginning.")),
}

#: How an attempt ended.
ENDS = {
    "no_root_here": Wording(
        _("%(node)s does not support root in the sandbox because of its isolation tier or its kernel.")
    ),
    "root_revoked": Wording(
        _("The owner is not allowed to be root inside any more. Clone the job without root inside.")
    ),
    "no_cluster": Wording(_("You are not a member of a virtual cluster. Ask an administrator to add you to one.")),
    "not_a_member": Wording(_("You are not a member of %(cluster)s. Ask an administrator to add you.")),
    "reservation_owner_gone": Wording(_("The program that these GPUs were reserved for has ended.")),
    "launch_failed": Wording(_("The job could not be started: %(error)s")),
    "shut_out": Wording(
        _(
            "The job user cannot access folder %(path)s on this node and cannot write files. Ask an operator "
            "to grant access to that folder, or for isolation tier 2."
        )
    ),
    "unreadable": Wording(
        _(
            "The job could not be started: jobs run under a separate user, who cannot read %(path)s. Make it "
            "readable for all (chmod -R o+rX), or ask the owner of that folder."
        )
    ),
    "launch_too_long": Wording(
        _("The job could not be started: preparing it took longer than %(seconds)s s."), seconds=number("seconds")
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
    "machine_out_of_memory": Wording(
        _("The node ran out of memory and killed the program. Request less, or a larger node.")
    ),
    "fault": Wording(
        _("The program was terminated by %(signal)s (%(words)s)."), words=labelled("signal", _SIGNALS.__getitem__)
    ),
    "signal": Wording(_("The program was terminated by signal %(signal)s.")),
    "exit_code": Wording(_("The program exited with code %(code)s. See its log.")),
    "disk_full": Wording(
        _("The disk was full while the job ran. %(how)s Free disk space and start it again."), how=nested("how")
    ),
    "rank_ended": Wording(_("The process on node rank %(rank)s exited.")),
    "rank_ended_so": Wording(_("The process on node rank %(rank)s exited. %(how)s"), how=nested("how")),
    "rank_killed": Wording(_("The process on node rank %(rank)s was killed.")),
    "not_started_again": Wording(_("%(why)s The endpoint is not restarted."), why=nested("why")),
    "starts_again": Wording(_("%(why)s It restarts in %(seconds)s s."), why=nested("why")),
    "tried_again": Wording(_("%(why)s Next retry in %(seconds)s s (%(number)s of %(most)s)."), why=nested("why")),
    "supervisor_lost": Wording(_("The supervisor process of the job was killed.")),
    "machine_restarted": Wording(_("The node was restarted.")),
    "machine_silent": Wording(_("Node %(node)s stopped responding.")),
    "card_failed": Wording(_("GPU %(card)s of %(node)s failed. %(why)s"), why=nested("why")),
    "mps_lost": Wording(_("The MPS daemon of its GPU exited. If programs fail, restore the job.")),
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
    "joined": Wording(_("Joined from %(address)s.")),
    "drained": Wording(_("Accepts no new jobs.")),
    "undrained": Wording(_("Accepts jobs again.")),
    "removed": Wording(_("Removed from the cluster.")),
    "silent": Wording(_("No heartbeat for %(seconds)s s."), seconds=number("seconds")),
    "unkillable": Wording(
        _("Process %(processes)s of job %(job)s cannot be killed. Restart the node, then resume scheduling."),
        processes=listed("processes"),
    ),
    "heard_again": Wording(_("Heartbeat received again.")),
    "cards_changed": Wording(
        ngettext_lazy("Had %(before)s GPU, now has %(now)s.", "Had %(before)s GPUs, now has %(now)s.", "before")
    ),
    "evictions_allowed": Wording(_("Evictions are allowed on this node.")),
    "evictions_forbidden": Wording(_("Evictions are not allowed on this node any more.")),
    "mps_allowed": Wording(_("Jobs on shares of its GPUs now run concurrently with MPS.")),
    "mps_forbidden": Wording(_("No other job uses MPS here.")),
    "mps_ended": Wording(
        _("An MPS daemon exited and was restarted. Jobs that used it: %(jobs)s."), jobs=listed("jobs")
    ),
    "eviction_proven": Wording(
        _("Verified: %(mib)s MiB left the GPU in %(out)s s and returned in %(back)s s; %(steps)s losses are equal."),
        mib=Show("mib", round),
        out=number("out_s"),
        back=number("back_s"),
    ),
    "eviction_not_proven": Wording(_("The verification failed: %(why)s")),
}

#: Why a job on a share of a card takes turns with the others on it.
MPS = {
    "no_program": Wording(
        _("nvidia-cuda-mps-control is not installed. It is part of the utilities of the NVIDIA driver.")
    ),
    "no_folder": Wording(_("No folder for the MPS daemon: %(error)s.")),
    "not_started": Wording(_("The MPS daemon did not start: %(error)s")),
    "other_user": Wording(_("The MPS daemon still serves jobs of another user. It stops with the last of them.")),
    "container": Wording(_("Jobs on this node run in containers, which share no memory with an MPS daemon.")),
    "simulated": Wording(_("GPU %(card)s is simulated.")),
    "slice": Wording(_("GPU %(card)s is a MIG slice, which is already isolated.")),
    "silent": Wording(_("The driver does not report whether GPU %(card)s supports MPS.")),
    "old_card": Wording(_("GPU %(card)s has compute capability %(has)s; MPS needs 3.5.")),
    "exclusive": Wording(
        _("GPU %(card)s is in exclusive mode and serves only one process. Reset it with nvidia-smi -c DEFAULT.")
    ),
    "full": Wording(_("GPU %(card)s already has %(most)s clients of this MPS daemon, the maximum.")),
}  # fmt: skip

CARD = {
    "off_bus": Wording(_("The GPU does not respond: it fell off the bus.")),
    "driver_hangs": Wording(_("The driver hangs.")),
    "memory_errors": Wording(
        ngettext_lazy(
            "%(count)s uncorrectable memory error.",
            "%(count)s uncorrectable memory errors.",
            "count",
        )
    ),
    "foreign_process": Wording(_("A foreign process runs here: process %(processes)s."), processes=listed("processes")),
    "works_again": Wording(_("Works again.")),
    "not_built_in": Wording(_("No longer installed.")),
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
    "time_nearly_up": Wording(_("“%(job)s” is close to its maximum run time")),
    "ask_for_time": Wording(
        _("The job is stopped at %(hours)s h of run time. Request more time on its page."), hours=hours("limit_s")
    ),
    "idle": Wording(_("“%(name)s” holds GPUs without using them")),
    "paused": Wording(_("“%(name)s” is paused and holds its GPUs")),
    "pause_over": Wording(_("“%(name)s” released its GPUs after a long pause")),
    "share_reached": Wording(_("“%(name)s” is using up its share of the GPU")),
    "share_ends": Wording(
        _("Uses %(held)s of GPU %(card)s, allowed are %(allowed)s. The job is stopped at 10 %% above its share."),
        held=memory("held_mib"),
        allowed=memory("allowed_mib"),
    ),
    "approval_requested": Wording(
        _("%(person)s requests to start %(kind)s “%(name)s”"), kind=labelled("kind", kinds.label_of)
    ),
    "approval_where": Wording(_("A job in cluster %(cluster)s is waiting for your approval.")),
    "approved": Wording(_("%(kind)s “%(name)s” was approved"), kind=labelled("kind", kinds.label_of)),
    "refused": Wording(_("%(kind)s “%(name)s” was denied"), kind=labelled("kind", kinds.label_of)),
    "time_requested": Wording(_("%(person)s requests %(hours)s h more for “%(job)s”"), hours=hours("span_s")),
    "time_granted": Wording(_("More time for “%(job)s”: granted")),
    "time_denied": Wording(_("More time for “%(job)s”: denied")),
}


def _severity(value: str) -> object:
    return Severity(value).label


#: Titles of alarms; their texts are those of the rules.
ALARMS = {
    "title": Wording("%(severity)s: %(rule)s", severity=labelled("severity", _severity),
                     rule=labelled("rule", rules.label_of)),
    "over": Wording(_("Resolved: %(severity)s: %(rule)s"), severity=labelled("severity", _severity),
                    rule=labelled("rule", rules.label_of)),
    "rule": Wording("%(rule)s", rule=labelled("rule", rules.label_of)),
    "test": Wording(_("Test alert")),
    "all": Wording(_("All alerts")),
    "affects": Wording(_("An alert affects your jobs: %(jobs)s")),
}  # fmt: skip


def register() -> None:
    """Make all texts known; called once when the app is ready."""
    wording.register("job", LIFECYCLE | PREEMPTION | ENDS)
    wording.register("node", NODE)
    wording.register("card", CARD)
    wording.register("mps", MPS)
    wording.register("news", NEWS)
    wording.register("alarm", ALARMS)
    wording.register("alarm.rule", {key: rule.wording for key, rule in rules.RULES.items()})
