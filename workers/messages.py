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
    "started": Wording(_("The program runs.")),
    "paused": Wording(_("Paused: memory is kept, computing stopped.")),
    "continued": Wording(_("Goes on.")),
    "stopping": Wording(_("Stopping.")),
    "finishing": Wording(_("Finishing; the result is kept.")),
    "making_room": Wording(_("Makes room for more important work.")),
    "exited": Wording(_("The program ended by itself.")),
    "failed": Wording(_("The program failed.")),
    "finished_early": Wording(_("Finished early, the result is kept.")),
    "finished_by_loss": Wording(_("Finished early; what it had saved is the result. %(why)s"), why=nested("why")),
    "suspended": Wording(_("Left a checkpoint and waits for devices again.")),
    "lost": Wording(_("Lost.")),
    "requeued": Wording(_("Queued again.")),
    "requeued_elsewhere": Wording(_("Queued again, to start elsewhere.")),
    "requeued_same": Wording(_("Queued again, to start on %(node)s once that is back.")),
    "requeued_whole": Wording(_("Queued again, to start as a whole.")),
    "restored": Wording(_("Queued again to go on from a checkpoint.")),
    "pause_requested": Wording(_("Pause asked.")),
    "continue_requested": Wording(_("Continuing asked.")),
    "finish_requested": Wording(_("Finishing asked.")),
    "stop_requested": Wording(_("Stop asked.")),
    "force_requested": Wording(_("Forced stop asked.")),
    "force_unheard": Wording(
        _(
            "Forced stop asked, but %(nodes)s has not answered for %(seconds)s s. Nothing can be ended there before it "
            "is heard again; the devices stay taken until then."
        ),
        nodes=listed("nodes"),
        seconds=number("seconds"),
    ),
    "approval_requested": Wording(_("Waits for an approval.")),
    "approved": Wording(_("Approved.")),
    "approved_because": Wording(_("Approved: %(word)s")),
    "refused": Wording(_("Its start was refused. Ask those in charge of the cluster why.")),
    "refused_because": Wording(_("Its start was refused: %(word)s")),
    "follows": Wording(_("Follows the jobs %(jobs)s now."), jobs=listed("jobs")),
    "follows_none": Wording(_("Follows no other job now.")),
    "followed_failed": Wording(
        _("Job %(job)s did not complete, so this one was not started. Restore that one, then this one.")
    ),
    "outputs_gone": Wording(
        _("The outputs of job %(job)s, which this one reads, are gone. Run that one again, then restore this one.")
    ),
    "priority_changed": Wording(_("Priority changed from %(old)s to %(new)s.")),
    "more_time_requested": Wording(_("%(hours)s h more asked for."), hours=hours("span_s")),
    "more_time_granted": Wording(_("%(hours)s h more granted."), hours=hours("span_s")),
    "more_time_granted_because": Wording(_("%(hours)s h more granted: %(word)s"), hours=hours("span_s")),
    "more_time_denied": Wording(_("No more time.")),
    "more_time_denied_because": Wording(_("No more time: %(word)s")),
    "time_nearly_up": Wording(_("Its maximum run time of %(hours)s h is nearly over."), hours=hours("limit_s")),
    "idle": Wording(_("Its cards did nothing for %(hours)s h."), hours=hours("idle_s", 1)),
    "idle_ends": Wording(
        _("Its cards did nothing for %(hours)s h. It is ended when they stay unused."), hours=hours("idle_s", 1)
    ),
    "suspend_requested": Wording(_("Asked to save and to give its cards back.")),
    "pause_nearly_over": Wording(
        _("It has been paused for almost %(hours)s h, as long as its cluster allows. Continue it, or it is stopped."),
        hours=hours("limit_s"),
    ),
    "pause_nearly_over_saves": Wording(
        _(
            "It has been paused for almost %(hours)s h, as long as its cluster allows. Continue it, or it saves, gives "
            "its cards back and goes on when you continue it later."
        ),
        hours=hours("limit_s"),
    ),
    "pause_over": Wording(_("It was paused for %(hours)s h, as long as its cluster allows."), hours=hours("limit_s")),
    "result_kept": Wording(
        _("The earlier result stays; attempt %(attempt)s did not end well. %(why)s"), why=nested("why")
    ),
    "after_backup": Wording(
        _("The platform was restored from a backup of %(when)s; what became of the job since is not known."),
        when=moment("made_at"),
    ),
}

#: Work that makes room for other work, and comes back.
PREEMPTION = {
    "room_for_urgent": Wording(_("Makes room for job %(job)s, which is urgent.")),
    "room_for_guarantee": Wording(_("Makes room for job %(job)s: these devices were borrowed from its cluster.")),
    "room_for_window": Wording(_("Makes room for job %(job)s: these machines are kept for such work now.")),
    "room_for_turn": Wording(_("Makes room for job %(job)s, which waited longer and let it go ahead.")),
    "room_for_idle": Wording(
        _("Gives its cards to job %(job)s, as nobody uses it. Continue it to go on with its files and packages.")
    ),
    "leaves_for_idle": Wording(_("Leaves its cards for a while for job %(job)s, as nobody uses it.")),
    "leaves_for_urgent": Wording(_("Leaves its cards for a while for job %(job)s, which is urgent.")),
    "leaves_for_guarantee": Wording(
        _("Leaves its cards for a while: job %(job)s needs them, in whose cluster they belong.")
    ),
    "leaves_for_window": Wording(
        _("Leaves its cards for a while for job %(job)s, for which these machines are kept now.")
    ),
    "leaves_for_turn": Wording(_("Leaves its cards for a while for job %(job)s, which waited longer.")),
    "evicted": Wording(
        _("Its cards serve more important work; its state waits in the machine's memory and goes on by itself.")
    ),
    "stays": Wording(_("Stays on its cards: %(why)s"), why=nested("why")),
    "supervisor_too_old": Wording(_("Its supervisor does not know how.")),
    "coming_back": Wording(_("Its cards are free again; it comes back to them.")),
    "made_room": Wording(_("Made room; it goes on from its checkpoint.")),
    "made_room_unsaved": Wording(_("Made room; it starts over, as it left no checkpoint.")),
    "gave_back": Wording(_("Saved and gave its cards back. Continue it, and it goes on from its checkpoint.")),
    "gave_back_unsaved": Wording(_("Gave its cards back without a checkpoint. Continue it, and it starts over.")),
    "left_late": Wording(_("Did not leave in time and was ended; it goes on from its newest checkpoint.")),
    "left_late_unsaved": Wording(_("Did not leave in time and was ended; it starts over, as it left no checkpoint.")),
    "stranded": Wording(_("It could not be brought back onto its cards (%(why)s). It goes on from its checkpoint.")),
    "stranded_unsaved": Wording(_("It could not be brought back onto its cards (%(why)s). It starts over.")),
}

#: How an attempt ended.
ENDS = {
    "no_root_here": Wording(_("%(node)s offers no root inside. Its tier of isolation, or its kernel, forbids it.")),
    "root_revoked": Wording(_("Its owner may not be root inside any more. Clone it and leave root inside out.")),
    "no_cluster": Wording(_("You belong to no virtual cluster yet. Ask an administrator to add you to one.")),
    "not_a_member": Wording(_("You are not a member of %(cluster)s. Ask an administrator to add you.")),
    "reservation_owner_gone": Wording(_("The program that these GPUs were reserved for has ended.")),
    "launch_failed": Wording(_("It could not be started: %(error)s")),
    "shut_out": Wording(
        _(
            "Its user cannot enter the folder %(path)s on this machine, and so not write to files of its own. Ask an "
            "operator to let others pass through that folder, or for isolation tier 2."
        )
    ),
    "unreadable": Wording(
        _(
            "It could not be started: jobs run under a user of their own here, who may not read %(path)s. Let "
            "everybody read it (chmod -R o+rX), or ask whoever keeps that folder to."
        )
    ),
    "launch_too_long": Wording(
        _("It could not be started: preparing it took longer than %(seconds)s s."), seconds=number("seconds")
    ),
    "over_memory": Wording(
        _("Memory limit %(limit)s exceeded: the program held %(held)s. Ask for more memory."),
        limit=memory("limit_mib"),
        held=memory("held_mib"),
    ),
    "over_disk": Wording(
        _("Disk limit %(limit)s exceeded: the job used %(used)s. Delete files, or request a higher limit."),
        limit=size("limit_bytes"),
        used=size("used_bytes"),
    ),
    "machine_out_of_memory": Wording(
        _("The machine ran out of memory and ended the program. Ask for less, or for a larger machine.")
    ),
    "fault": Wording(
        _("The program was ended by %(signal)s (%(words)s)."), words=labelled("signal", _SIGNALS.__getitem__)
    ),
    "signal": Wording(_("The program was ended by signal %(signal)s.")),
    "exit_code": Wording(_("The program ended with exit code %(code)s. Its log says more.")),
    "disk_full": Wording(
        _("The disk was full while it ran. %(how)s Free disk space and start it again."), how=nested("how")
    ),
    "rank_ended": Wording(_("The part on its node %(rank)s ended.")),
    "rank_ended_so": Wording(_("The part on its node %(rank)s ended. %(how)s"), how=nested("how")),
    "rank_killed": Wording(_("The part on its node %(rank)s was killed.")),
    "not_started_again": Wording(_("%(why)s The service is not started again."), why=nested("why")),
    "starts_again": Wording(_("%(why)s It starts again in %(seconds)s s."), why=nested("why")),
    "tried_again": Wording(
        _("%(why)s It is tried again in %(seconds)s s (%(number)s of %(most)s)."), why=nested("why")
    ),
    "supervisor_lost": Wording(_("The process that looks after the job was killed.")),
    "machine_restarted": Wording(_("The machine was restarted.")),
    "machine_silent": Wording(_("Machine %(node)s stopped answering.")),
    "card_failed": Wording(_("Card %(card)s of %(node)s failed. %(why)s"), why=nested("why")),
    "mps_lost": Wording(
        _("The MPS daemon through which it uses its card ended. Its programs may fail; restore it then.")
    ),
    "share_reached": Wording(
        _("Holds %(held)s of card %(card)s; its share is %(allowed)s."),
        held=memory("held_mib"),
        allowed=memory("allowed_mib"),
    ),
    "share_exceeded": Wording(
        _("Ended: it held %(held)s of card %(card)s, its share is %(allowed)s."),
        held=memory("held_mib"),
        allowed=memory("allowed_mib"),
    ),
}

NODE = {
    "joined": Wording(_("Joined from %(address)s.")),
    "drained": Wording(_("Takes no new work.")),
    "undrained": Wording(_("Takes work again.")),
    "removed": Wording(_("Taken out of the cluster.")),
    "silent": Wording(_("Silent for %(seconds)s s."), seconds=number("seconds")),
    "unkillable": Wording(
        _("Nothing ends process %(processes)s of job %(job)s. Restart the machine, then let it take work again."),
        processes=listed("processes"),
    ),
    "heard_again": Wording(_("Heard again.")),
    "cards_changed": Wording(
        ngettext_lazy(
            "It had %(before)s card and has %(now)s now.", "It had %(before)s cards and has %(now)s now.", "before"
        )
    ),
    "evictions_allowed": Wording(_("Work may be evicted here.")),
    "evictions_forbidden": Wording(_("No work is evicted here any more.")),
    "mps_allowed": Wording(_("Jobs on shares of its cards use them at the same time, by MPS, from now on.")),
    "mps_forbidden": Wording(_("No further job uses MPS here.")),
    "mps_ended": Wording(
        _("An MPS daemon ended by itself and was started again. Jobs that used it: %(jobs)s."), jobs=listed("jobs")
    ),
    "eviction_proven": Wording(
        _("Proven: %(mib)s MiB left the card in %(out)s s and came back in %(back)s s; %(steps)s losses are equal."),
        mib=Show("mib", round),
        out=number("out_s"),
        back=number("back_s"),
    ),
    "eviction_not_proven": Wording(_("The proof failed: %(why)s")),
}

#: Why a job on a share of a card takes turns with the others on it.
MPS = {
    "no_program": Wording(
        _("nvidia-cuda-mps-control is not installed here. It comes with NVIDIA's driver, among its utilities.")
    ),
    "no_folder": Wording(_("There is no folder for its MPS daemon: %(error)s.")),
    "not_started": Wording(_("Its MPS daemon did not start: %(error)s")),
    "other_user": Wording(_("Its owner's MPS daemon serves jobs of another user yet. It ends with the last of those.")),
    "container": Wording(_("Its jobs run in containers, which share no memory with an MPS daemon.")),
    "simulated": Wording(_("Card %(card)s is simulated.")),
    "slice": Wording(_("Card %(card)s is a MIG slice, which has its own part of the card already.")),
    "silent": Wording(_("The driver does not tell whether card %(card)s can be shared by MPS.")),
    "old_card": Wording(_("Card %(card)s has compute capability %(has)s; MPS needs 3.5.")),
    "exclusive": Wording(
        _("Card %(card)s serves one process at a time, so one person alone. Set it back by nvidia-smi -c DEFAULT.")
    ),
    "full": Wording(_("Card %(card)s has %(most)s clients of this MPS daemon already, as many as it takes.")),
}  # fmt: skip

CARD = {
    "off_bus": Wording(_("It does not answer any more: it fell off the bus.")),
    "driver_hangs": Wording(_("Its driver hangs.")),
    "memory_errors": Wording(
        ngettext_lazy(
            "It had %(count)s memory error that could not be corrected.",
            "It had %(count)s memory errors that could not be corrected.",
            "count",
        )
    ),
    "foreign_process": Wording(_("Not ours computes here: process %(processes)s."), processes=listed("processes")),
    "works_again": Wording(_("Works again.")),
    "not_built_in": Wording(_("Not built in any more.")),
}

#: What owners and those in charge are told.
NEWS = {
    "completed": Wording(_("%(kind)s “%(name)s” completed"), kind=labelled("kind", kinds.label_of)),
    "stopped": Wording(_("%(kind)s “%(name)s” was stopped"), kind=labelled("kind", kinds.label_of)),
    "failed": Wording(_("%(kind)s “%(name)s” failed"), kind=labelled("kind", kinds.label_of)),
    "attempt_failed": Wording(
        _("%(kind)s “%(name)s”: the new attempt failed, the earlier result stays"),
        kind=labelled("kind", kinds.label_of),
    ),
    "made_room": Wording(_("%(kind)s “%(name)s” made room and waits again"), kind=labelled("kind", kinds.label_of)),
    "time_nearly_up": Wording(_("“%(job)s” is close to its maximum run time")),
    "ask_for_time": Wording(
        _("It ends at %(hours)s h of run time. Ask for more time on its page."), hours=hours("limit_s")
    ),
    "idle": Wording(_("“%(name)s” holds cards without using them")),
    "paused": Wording(_("“%(name)s” is paused and holds its cards")),
    "pause_over": Wording(_("“%(name)s” gave its cards back after a long pause")),
    "share_reached": Wording(_("“%(name)s” uses up its share of the card")),
    "share_ends": Wording(
        _("It holds %(held)s of card %(card)s and may hold %(allowed)s. With a tenth more it is ended."),
        held=memory("held_mib"),
        allowed=memory("allowed_mib"),
    ),
    "approval_requested": Wording(
        _("%(person)s wants to start %(kind)s “%(name)s”"), kind=labelled("kind", kinds.label_of)
    ),
    "approval_where": Wording(_("It waits in the cluster %(cluster)s until you approve or refuse it.")),
    "approved": Wording(_("%(kind)s “%(name)s” was approved"), kind=labelled("kind", kinds.label_of)),
    "refused": Wording(_("%(kind)s “%(name)s” was refused"), kind=labelled("kind", kinds.label_of)),
    "time_requested": Wording(_("%(person)s asks for %(hours)s h more for “%(job)s”"), hours=hours("span_s")),
    "time_granted": Wording(_("More time for “%(job)s”: granted")),
    "time_denied": Wording(_("More time for “%(job)s”: denied")),
}


def _severity(value: str) -> object:
    return Severity(value).label


#: Titles of alarms; their texts are those of the rules.
ALARMS = {
    "title": Wording("%(severity)s: %(rule)s", severity=labelled("severity", _severity),
                     rule=labelled("rule", rules.label_of)),
    "over": Wording(_("Over: %(severity)s: %(rule)s"), severity=labelled("severity", _severity),
                    rule=labelled("rule", rules.label_of)),
    "rule": Wording("%(rule)s", rule=labelled("rule", rules.label_of)),
    "test": Wording(_("A test of the alarms")),
    "all": Wording(_("All alarms")),
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
