"""Sentences that earlier versions wrote into rows, in English or Chinese, as codes and facts. Only for migration 0019."""

from __future__ import annotations

import re
from datetime import datetime, timezone
from functools import lru_cache
from typing import Any

#: Label of a kind of job as it stood in titles → the kind.
KINDS = {
    "Training": "training",
    "训练": "training",
    "Evaluation": "evaluation",
    "评估": "evaluation",
    "Inference service": "service",
    "推理服务": "service",
    "Command": "command",
    "命令": "command",
}

#: Code, texts, facts of sentences without places.
EXACT: tuple[tuple[str, tuple[str, ...], dict[str, str]], ...] = (
    ("job.queued", ("Queued.", "已排队。"), {}),
    ("job.assigned", ("Devices assigned.", "已分配设备。"), {}),
    ("job.launched", ("Starting.", "正在启动。"), {}),
    ("job.started", ("The program runs.", "程序正在运行。"), {}),
    ("job.paused", ("Paused: memory is kept, computing stopped.", "已暂停：内存保留，计算停止。"), {}),
    ("job.continued", ("Goes on.", "继续运行。"), {}),
    ("job.stopping", ("Stopping.", "正在停止。"), {}),
    ("job.finishing", ("Finishing; the result is kept.", "正在完成；结果会保留。"), {}),
    ("job.making_room", ("Makes room for more important work.", "正在为更重要的工作让出资源。"), {}),
    ("job.exited", ("The program ended by itself.", "程序自行结束。"), {}),
    ("job.failed", ("The program failed.", "程序失败。"), {}),
    ("job.finished_early", ("Finished early, the result is kept.", "提前完成，结果已保留。"), {}),
    ("job.suspended", ("Left a checkpoint and waits for devices again.", "已留下检查点，等待重新分配设备。"), {}),
    ("job.lost", ("Lost.", "已失联。"), {}),
    ("job.requeued", ("Queued again.", "已重新排队。"), {}),
    ("job.requeued_elsewhere", ("Queued again, to start elsewhere.", "已重新排队，将在别处启动。"), {}),
    ("job.requeued_whole", ("Queued again, to start as a whole.", "重新排队，将整体启动。"), {}),
    ("job.restored", ("Queued again to go on from a checkpoint.", "已重新排队，将从检查点继续。"), {}),
    ("job.pause_requested", ("Pause asked.", "已请求暂停。"), {}),
    ("job.continue_requested", ("Continuing asked.", "已请求继续。"), {}),
    ("job.finish_requested", ("Finishing asked.", "已请求完成。"), {}),
    ("job.stop_requested", ("Stop asked.", "已请求停止。"), {}),
    ("job.more_time_denied", ("No more time.", "未批准更多时间。"), {}),
    (
        "job.evicted",
        (
            "Its cards serve more important work; its state waits in the machine's memory and goes on by itself.",
            "它的卡正用于更重要的作业；它的状态保存在机器内存中，之后会自动继续。",
        ),
        {},
    ),
    ("job.supervisor_too_old", ("Its supervisor does not know how.", "它的监管进程不支持这样做。"), {}),
    ("job.coming_back", ("Its cards are free again; it comes back to them.", "它的卡又空闲了；它正回到卡上。"), {}),
    ("job.made_room", ("Made room; it goes on from its checkpoint.", "已让出资源；之后从检查点继续。"), {}),
    (
        "job.made_room_unsaved",
        ("Made room; it starts over, as it left no checkpoint.", "已让出资源；没有检查点，将从头开始。"),
        {},
    ),
    (
        "job.left_late",
        (
            "Did not leave in time and was ended; it goes on from its newest checkpoint.",
            "未及时让出而被结束；将从最新检查点继续。",
        ),
        {},
    ),
    (
        "job.left_late_unsaved",
        (
            "Did not leave in time and was ended; it starts over, as it left no checkpoint.",
            "未及时让出而被结束；没有检查点，将从头开始。",
        ),
        {},
    ),
    (
        "job.machine_out_of_memory",
        (
            "The machine ran out of memory and ended the program. Ask for less, or for a larger machine.",
            "机器内存不足，程序被结束。请减少需求，或使用更大的机器。",
        ),
        {},
    ),
    ("job.machine_restarted", ("The machine was restarted.", "机器已重启。"), {}),
    (
        "job.no_cluster",
        (
            "You belong to no virtual cluster yet. Ask an administrator to add you to one.",
            "你还不属于任何虚拟集群。请联系管理员将你加入。",
        ),
        {},
    ),
    ("node.drained", ("Takes no new work.", "不再接收新任务。"), {}),
    ("node.undrained", ("Takes work again.", "恢复接收任务。"), {}),
    ("node.removed", ("Taken out of the cluster.", "已移出集群。"), {}),
    ("node.heard_again", ("Heard again.", "恢复响应。"), {}),
    ("node.evictions_allowed", ("Work may be evicted here.", "这里的作业可以被暂时移出显卡。"), {}),
    ("node.evictions_forbidden", ("No work is evicted here any more.", "这里不再把作业移出显卡。"), {}),
    ("card.off_bus", ("It does not answer any more: it fell off the bus.", "它不再响应：已从总线上掉线。"), {}),
    ("card.driver_hangs", ("Its driver hangs.", "其驱动程序挂起。"), {}),
    ("card.works_again", ("Works again.", "恢复正常。"), {}),
    ("card.not_built_in", ("Not built in any more.", "已不再安装。"), {}),
    ("service.deleted", ("This service was deleted.", "此服务已删除。"), {}),
    ("service.model_deleted", ("The model of this service was deleted.", "此服务的模型已删除。"), {}),
    (
        "service.model_not_shared",
        ("The model of this service is no longer shared with its owner.", "此服务的模型已不再与其所有者共享。"),
        {},
    ),
    (
        "evaluation.gone",
        ("The model or the dataset of this evaluation was deleted.", "此评估所用的模型或数据集已被删除。"),
        {},
    ),
    ("training.owner_not_allowed", ("Its owner may no longer run trainings.", "其所有者已无权运行训练。"), {}),
    ("training.dataset_gone", ("This dataset is no longer there for you.", "你已无法使用此数据集。"), {}),
    ("training.no_command", ("A command is a list of words.", "命令是由词组成的列表。"), {}),
    ("job.supervisor_lost", ("The process that looks after the job was killed.", "看管任务的进程被终止."), {}),
    (
        "job.evicted",
        (
            "Left its cards for a while: its card memory waits in the machine's memory.",
            "暂时让出了卡：它的显存内容保存在机器内存中。",
        ),
        {},
    ),
    ("notice.test", ("A test of your notifications", "通知测试"), {}),
    ("notice.arrived", ("It arrived, so it works.", "已收到，说明通知正常。"), {}),
    ("alarm.test", ("A test of the alarms", "告警测试"), {}),
    ("job.reason", ("The program ended by itself", "程序自行结束"), {"reason": "done"}),
    ("job.reason", ("The program failed", "程序失败"), {"reason": "user_code"}),
    ("job.reason", ("The program ran out of memory", "程序内存不足"), {"reason": "out_of_memory"}),
    ("job.reason", ("The maximum run time was reached", "达到最长运行时间"), {"reason": "max_runtime"}),
    ("job.reason", ("The machine stopped answering", "机器停止响应"), {"reason": "node_lost"}),
    ("job.reason", ("A card of the job failed", "任务的一张卡发生故障"), {"reason": "device_failed"}),
    (
        "job.reason",
        ("The process that looks after the job was killed", "看管任务的进程被终止"),
        {"reason": "supervisor_lost"},
    ),
    ("job.reason", ("The job could not be started", "任务无法启动"), {"reason": "launch_failed"}),
    ("job.reason", ("More important work needed the devices", "更重要的工作需要这些设备"), {"reason": "preempted"}),
    (
        "job.reason",
        ("More important work needed the devices for a while", "更重要的作业暂时需要这些设备"),
        {"reason": "evicted"},
    ),
    ("job.reason", ("Another part of the job ended", "任务的另一部分结束"), {"reason": "gang_partner"}),
    ("job.reason", ("It left its devices unused", "它闲置了所占设备"), {"reason": "idle"}),
    ("job.reason", ("Its owner ended it", "由所有者结束"), {"reason": "owner"}),
    ("job.reason", ("An operator ended it", "由运维人员结束"), {"reason": "operator"}),
)

#: Code, texts, and by place the fact and how it is read. What stands first is tried first.
PATTERNS: tuple[tuple[str, tuple[str, ...], dict[str, tuple[str, str]]], ...] = (
    (
        "job.starts_again",
        ("%(why)s It starts again in %(seconds)s s.", "%(why)s将在 %(seconds)s 秒后重新启动。"),
        {"why": ("why", "nested"), "seconds": ("seconds", "number")},
    ),
    (
        "job.card_failed",
        ("Card %(card)s of %(node)s failed. %(why)s", "%(node)s 的卡 %(card)s 发生故障。%(why)s"),
        {"card": ("card", "whole"), "node": ("node", "word"), "why": ("why", "nested")},
    ),
    (
        "job.rank_ended",
        ("The part on its node %(rank)s ended.", "它在节点 %(rank)s 上的部分已结束。"),
        {"rank": ("rank", "whole")},
    ),
    (
        "job.rank_ended_so",
        ("The part on its node %(rank)s ended. %(how)s", "它在节点 %(rank)s 上的部分已结束。 %(how)s"),
        {"rank": ("rank", "whole"), "how": ("how", "nested")},
    ),
    (
        "job.rank_killed",
        ("The part on its node %(rank)s was killed.", "它在节点 %(rank)s 上的部分被强行终止。"),
        {"rank": ("rank", "whole")},
    ),
    ("job.stays", ("Stays on its cards: %(why)s", "仍留在原来的卡上：%(why)s"), {"why": ("why", "nested")}),
    (
        "job.placed",
        ("Placed on %(nodes)s.", "Placed together on %(nodes)s.", "已分配到 %(nodes)s。"),
        {"nodes": ("nodes", "names")},
    ),
    (
        "job.priority_changed",
        ("Priority changed from %(old)s to %(new)s.", "优先级从 %(old)s 改为 %(new)s。"),
        {"old": ("old", "whole"), "new": ("new", "whole")},
    ),
    (
        "job.more_time_requested",
        ("%(hours)s h more asked for.", "申请再加 %(hours)s 小时。"),
        {"hours": ("span_s", "hours")},
    ),
    (
        "job.more_time_granted",
        ("%(hours)s h more granted.", "批准再加 %(hours)s 小时。"),
        {"hours": ("span_s", "hours")},
    ),
    (
        "job.more_time_granted_because",
        ("%(hours)s h more granted: %(word)s", "批准再加 %(hours)s 小时：%(word)s"),
        {"hours": ("span_s", "hours"), "word": ("word", "text")},
    ),
    (
        "job.more_time_denied_because",
        ("No more time: %(word)s", "未批准更多时间：%(word)s"),
        {"word": ("word", "text")},
    ),
    (
        "job.time_nearly_up",
        ("Its maximum run time of %(hours)s h is nearly over.", "其最长运行时间 %(hours)s 小时即将用完。"),
        {"hours": ("limit_s", "hours")},
    ),
    (
        "job.idle",
        ("Its cards did nothing for %(hours)s h.", "其卡已 %(hours)s 小时未做任何计算。"),
        {"hours": ("idle_s", "hours")},
    ),
    (
        "job.idle_ends",
        (
            "Its cards did nothing for %(hours)s h. It is ended when they stay unused.",
            "其卡已 %(hours)s 小时未做任何计算。若继续闲置将被结束。",
        ),
        {"hours": ("idle_s", "hours")},
    ),
    (
        "job.after_backup",
        (
            "The platform was restored from a backup of %(when)s; what became of the job since is not known.",
            "平台已从 %(when)s 的备份恢复；此后该作业的情况不得而知。",
        ),
        {"when": ("made_at", "utc")},
    ),
    (
        "job.room_for_urgent",
        ("Makes room for job %(job)s, which is urgent.", "为紧急任务 %(job)s 让出资源。"),
        {"job": ("job", "whole")},
    ),
    (
        "job.room_for_guarantee",
        (
            "Makes room for job %(job)s: these devices were borrowed from its cluster.",
            "为任务 %(job)s 让出资源：这些设备是从其集群借用的。",
        ),
        {"job": ("job", "whole")},
    ),
    (
        "job.room_for_window",
        (
            "Makes room for job %(job)s: these machines are kept for such work now.",
            "为任务 %(job)s 让出资源：这些机器现在留给此类任务。",
        ),
        {"job": ("job", "whole")},
    ),
    (
        "job.room_for_turn",
        (
            "Makes room for job %(job)s, which waited longer and let it go ahead.",
            "为任务 %(job)s 让出资源：它等待更久并曾让本任务先行。",
        ),
        {"job": ("job", "whole")},
    ),
    (
        "job.leaves_for_urgent",
        ("Leaves its cards for a while for job %(job)s, which is urgent.", "暂时把卡让给紧急作业 %(job)s。"),
        {"job": ("job", "whole")},
    ),
    (
        "job.leaves_for_guarantee",
        (
            "Leaves its cards for a while: job %(job)s needs them, in whose cluster they belong.",
            "暂时让出卡：作业 %(job)s 需要它们，它们属于该作业的集群。",
        ),
        {"job": ("job", "whole")},
    ),
    (
        "job.leaves_for_window",
        (
            "Leaves its cards for a while for job %(job)s, for which these machines are kept now.",
            "暂时把卡让给作业 %(job)s，这些机器现在为它这类作业保留。",
        ),
        {"job": ("job", "whole")},
    ),
    (
        "job.leaves_for_turn",
        ("Leaves its cards for a while for job %(job)s, which waited longer.", "暂时把卡让给等待更久的作业 %(job)s。"),
        {"job": ("job", "whole")},
    ),
    (
        "job.stranded",
        (
            "It could not be brought back onto its cards (%(why)s). It goes on from its checkpoint.",
            "无法把它移回原来的卡（%(why)s）。它会从检查点继续。",
        ),
        {"why": ("why", "text")},
    ),
    (
        "job.stranded_unsaved",
        (
            "It could not be brought back onto its cards (%(why)s). It starts over.",
            "无法把它移回原来的卡（%(why)s）。它会从头开始。",
        ),
        {"why": ("why", "text")},
    ),
    (
        "job.launch_too_long",
        (
            "It could not be started: preparing it took longer than %(seconds)s s.",
            "无法启动：准备时间超过 %(seconds)s 秒。",
        ),
        {"seconds": ("seconds", "number")},
    ),
    ("job.launch_failed", ("It could not be started: %(error)s", "无法启动：%(error)s"), {"error": ("error", "text")}),
    (
        "job.over_memory",
        (
            "Memory limit %(limit)s exceeded: the program held %(held)s. Ask for more memory.",
            "超过内存限制 %(limit)s：程序占用了 %(held)s。请申请更多内存。",
        ),
        {"limit": ("limit_mib", "memory"), "held": ("held_mib", "memory")},
    ),
    (
        "job.signal",
        ("The program was ended by signal %(signal)s.", "程序被信号 %(signal)s 结束。"),
        {"signal": ("signal", "word")},
    ),
    (
        "job.fault",
        ("The program was ended by %(signal)s (%(words)s).", "程序被 %(signal)s 结束（%(words)s）。"),
        {"signal": ("signal", "word"), "words": ("", "text")},
    ),
    (
        "job.exit_code",
        ("The program ended with exit code %(code)s. Its log says more.", "程序以退出码 %(code)s 结束。详情见日志。"),
        {"code": ("code", "whole")},
    ),
    (
        "job.machine_silent",
        ("Machine %(node)s stopped answering.", "机器 %(node)s 停止响应。"),
        {"node": ("node", "word")},
    ),
    (
        "job.share_reached",
        (
            "Holds %(held)s of card %(card)s; its share is %(allowed)s.",
            "占用卡 %(card)s 的 %(held)s；其份额为 %(allowed)s。",
        ),
        {"held": ("held_mib", "memory"), "card": ("card", "whole"), "allowed": ("allowed_mib", "memory")},
    ),
    (
        "job.share_exceeded",
        (
            "Ended: it held %(held)s of card %(card)s, its share is %(allowed)s.",
            "已结束：它占用卡 %(card)s 的 %(held)s，份额为 %(allowed)s。",
        ),
        {"held": ("held_mib", "memory"), "card": ("card", "whole"), "allowed": ("allowed_mib", "memory")},
    ),
    (
        "job.not_a_member",
        (
            "You are not a member of %(cluster)s. Ask an administrator to add you.",
            "你不是 %(cluster)s 的成员。请联系管理员将你加入。",
        ),
        {"cluster": ("cluster", "text")},
    ),
    ("node.joined", ("Joined from %(address)s.", "从 %(address)s 加入。"), {"address": ("address", "word")}),
    ("node.silent", ("Silent for %(seconds)s s.", "已有 %(seconds)s 秒无响应。"), {"seconds": ("seconds", "number")}),
    (
        "node.cards_changed",
        ("It had %(before)s cards and has %(now)s now.", "原有 %(before)s 张卡，现有 %(now)s 张。"),
        {"before": ("before", "whole"), "now": ("now", "whole")},
    ),
    (
        "node.eviction_proven",
        (
            "Proven: %(mib)s MiB left the card in %(out)s s and came back in %(back)s s; %(steps)s losses are equal.",
            "已验证：%(mib)s MiB 在 %(out)s 秒内离开卡，在 %(back)s 秒内回到卡上；%(steps)s 个损失值一致。",
        ),
        {
            "mib": ("mib", "number"),
            "out": ("out_s", "number"),
            "back": ("back_s", "number"),
            "steps": ("steps", "whole"),
        },
    ),
    (
        "card.memory_errors",
        ("It had %(count)s memory errors that could not be corrected.", "它出现了 %(count)s 个无法纠正的内存错误。"),
        {"count": ("count", "whole")},
    ),
    (
        "card.foreign_process",
        ("Not ours computes here: process %(processes)s.", "有非本平台的进程在此计算：进程 %(processes)s。"),
        {"processes": ("processes", "names")},
    ),
    (
        "news.completed",
        ("%(kind)s “%(name)s” completed", "%(kind)s“%(name)s”已完成"),
        {"kind": ("kind", "kind"), "name": ("name", "text")},
    ),
    (
        "news.stopped",
        ("%(kind)s “%(name)s” was stopped", "%(kind)s“%(name)s”已停止"),
        {"kind": ("kind", "kind"), "name": ("name", "text")},
    ),
    (
        "news.failed",
        ("%(kind)s “%(name)s” failed", "%(kind)s“%(name)s”失败"),
        {"kind": ("kind", "kind"), "name": ("name", "text")},
    ),
    (
        "news.made_room",
        ("%(kind)s “%(name)s” made room and waits again", "%(kind)s“%(name)s”让出资源并重新等待"),
        {"kind": ("kind", "kind"), "name": ("name", "text")},
    ),
    (
        "news.time_nearly_up",
        ("“%(job)s” is close to its maximum run time", "“%(job)s”即将达到最长运行时间"),
        {"job": ("job", "text")},
    ),
    (
        "news.ask_for_time",
        (
            "It ends at %(hours)s h of run time. Ask for more time on its page.",
            "它在运行满 %(hours)s 小时后结束。可在其页面申请更多时间。",
        ),
        {"hours": ("limit_s", "hours")},
    ),
    (
        "news.idle",
        ("“%(name)s” holds cards without using them", "“%(name)s”占用卡但未使用"),
        {"name": ("name", "text")},
    ),
    (
        "news.share_reached",
        ("“%(name)s” uses up its share of the card", "“%(name)s”用尽了其卡份额"),
        {"name": ("name", "text")},
    ),
    (
        "news.share_ends",
        (
            "It holds %(held)s of card %(card)s and may hold %(allowed)s. With a tenth more it is ended.",
            "它占用卡 %(card)s 的 %(held)s，允许 %(allowed)s。再多十分之一就会被结束。",
        ),
        {"held": ("held_mib", "memory"), "card": ("card", "whole"), "allowed": ("allowed_mib", "memory")},
    ),
    (
        "news.time_requested",
        ("%(person)s asks for %(hours)s h more for “%(job)s”", "%(person)s 为“%(job)s”申请再加 %(hours)s 小时"),
        {"person": ("person", "text"), "hours": ("span_s", "hours"), "job": ("job", "text")},
    ),
    (
        "news.time_granted",
        ("More time for “%(job)s”: granted", "“%(job)s”的更多时间：已批准"),
        {"job": ("job", "text")},
    ),
    ("news.time_denied", ("More time for “%(job)s”: denied", "“%(job)s”的更多时间：已拒绝"), {"job": ("job", "text")}),
    (
        "training.version_not_imported",
        ("%(version)s is not imported yet.", "%(version)s 尚未导入。"),
        {"version": ("version", "text")},
    ),
    (
        "training.version_not_annotated",
        (
            "%(version)s is not annotated yet. Annotate its images, or choose an annotated version.",
            "%(version)s 尚未标注。请标注其图像，或选择已标注的版本。",
        ),
        {"version": ("version", "text")},
    ),
    (
        "training.version_gone",
        ("%(version)s is no longer there.", "%(version)s 已不存在。"),
        {"version": ("version", "text")},
    ),
)

#: How a place is read → what stands there.
SHAPES = {
    "hours": r"[\d.]+",
    "memory": r"[\d.]+ [GM]iB",
    "names": ".+?",
    "nested": ".+",
    "number": r"[\d.]+",
    "text": ".+?",
    "utc": r"[\d-]+ [\d:]+ UTC",
    "whole": r"-?\d+",
    "word": r"\S+",
    "kind": "|".join(map(re.escape, KINDS)),
}
_PLACE = re.compile(r"%\((\w+)\)s")


def _pattern(text: str, places: dict[str, tuple[str, str]]) -> re.Pattern[str]:
    parts = _PLACE.split(text)
    shape = "".join(f"(?P<{p}>{SHAPES[places[p][1]]})" if n % 2 else re.escape(p) for n, p in enumerate(parts))
    return re.compile(shape, re.DOTALL)


_EXACT = {text: (code, facts) for code, texts, facts in EXACT for text in texts}
_COMPILED = [(code, _pattern(text, places), places) for code, texts, places in PATTERNS for text in texts]


@lru_cache(maxsize=4096)
def recognised(text: str) -> dict[str, Any]:
    """{"code", "facts"} of a stored sentence; one nobody knows is kept as it is, an empty one says nothing."""
    if not text:
        return {}
    if text in _EXACT:
        code, facts = _EXACT[text]
        return {"code": code, "facts": facts}
    for code, pattern, places in _COMPILED:
        if found := pattern.fullmatch(text):
            read = {places[p][0]: _fact(places[p][1], value) for p, value in found.groupdict().items() if places[p][0]}
            return {"code": code, "facts": read}
    return {"code": "text", "facts": {"text": text}}


def _fact(how: str, value: str) -> Any:
    match how:
        case "whole":
            return int(value)
        case "number":
            return float(value)
        case "hours":
            return float(value) * 3600
        case "memory":
            amount, unit = value.split()
            return float(amount) * (1024 if unit == "GiB" else 1)
        case "names":
            return value.split(", ")
        case "nested":
            return recognised(value)
        case "utc":
            return datetime.strptime(value, "%Y-%m-%d %H:%M UTC").replace(tzinfo=timezone.utc).isoformat()
        case "kind":
            return KINDS[value]
    return value
