"""Sentences as earlier versions wrote them into rows, in the language of whoever acted, and what becomes of them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

#: Stored sentence → code and facts.
SENTENCES: dict[str, tuple[str, dict[str, Any]]] = {
    "Stop asked.": ("job.stop_requested", {}),
    "已请求停止。": ("job.stop_requested", {}),
    "Its owner ended it": ("job.reason", {"reason": "owner"}),
    "由所有者结束": ("job.reason", {"reason": "owner"}),
    "Placed together on n1, n2.": ("job.placed", {"nodes": ["n1", "n2"]}),
    "已分配到 n1。": ("job.placed", {"nodes": ["n1"]}),
    "Its cards did nothing for 2.5 h.": ("job.idle", {"idle_s": 9000.0}),
    "Memory limit 512 MiB exceeded: the program held 1.5 GiB. Ask for more memory.": (
        "job.over_memory", {"limit_mib": 512.0, "held_mib": 1536.0}
    ),
    "The program was ended by SIGSEGV (a segmentation fault).": ("job.fault", {"signal": "SIGSEGV"}),
    "The program ended with exit code 3. Its log says more. It starts again in 8 s.": (
        "job.starts_again", {"why": {"code": "job.exit_code", "facts": {"code": 3}}, "seconds": 8.0}
    ),
    "程序以退出码 3 结束。详情见日志。将在 8 秒后重新启动。": (
        "job.starts_again", {"why": {"code": "job.exit_code", "facts": {"code": 3}}, "seconds": 8.0}
    ),
    "The part on its node 2 ended. The program ended by itself.": (
        "job.rank_ended_so", {"rank": 2, "how": {"code": "job.exited", "facts": {}}}
    ),
    "Card 1 of n1 failed. Its driver hangs.": (
        "job.card_failed", {"card": 1, "node": "n1", "why": {"code": "card.driver_hangs", "facts": {}}}
    ),
    "The process that looks after the job was killed.": ("job.supervisor_lost", {}),
    "It could not be started: OSError: [Errno 28] no\nspace": (
        "job.launch_failed", {"error": "OSError: [Errno 28] no\nspace"}
    ),
    "The platform was restored from a backup of 2026-01-31 08:00 UTC; what became of the job since is not known.": (
        "job.after_backup", {"made_at": "2026-01-31T08:00:00+00:00"}
    ),
    "2 h more granted: until six": ("job.more_time_granted_because", {"span_s": 7200.0, "word": "until six"}),
    "Makes room for job 7, which is urgent.": ("job.room_for_urgent", {"job": 7}),
    "My own words. 我的话": ("text", {"text": "My own words. 我的话"}),
    "": ("", {}),
}  # fmt: skip
EXPECTED = list(SENTENCES.values())


def write(apps: Any) -> None:
    """Put them into a database as of the squashed migrations that has a row in every table."""

    def model(app: str, name: str) -> Any:
        return apps.get_model(app, name).objects

    job, user = model("workers", "Job").get(), model("accounts", "User").order_by("pk").first()
    for text in SENTENCES:
        model("workers", "JobEvent").create(job=job, attempt=9, event="x", state="queued", sentence=text)
    for n, (title, text) in enumerate(
        [("Training “a” failed", "程序以退出码 3 结束。详情见日志。"), ("Mine: 50 % done", "")]
    ):
        model("accounts", "Notification").create(user=user, kind="told", key=f"told {n}", title=title, text=text)
    proof = {"driver": "580", "ok": False, "sentence": "it could not leave the card"}
    model("workers", "Node").update(evict_proof=proof)
    model("workers", "Alarm").all().delete()
    for key, subject, facts in (("gpu_sick", "n1 gpu0", {"note": "其驱动程序挂起。"}),
                                ("storage_quota", "alice 的存储", {"user": 1})):  # fmt: skip
        rule = model("workers", "AlarmRule").create(key=key)
        model("workers", "Alarm").create(rule=rule, subject=subject, severity="warning", facts=facts)


def read() -> SimpleNamespace:
    """What stands there after every migration, by today's models."""
    from accounts.models import Notification
    from workers.core.models import Alarm, Job, JobEvent, Node

    events = JobEvent.objects.filter(attempt=9).order_by("pk")
    told = Notification.objects.filter(kind="told").order_by("pk")
    job = Job.objects.get()
    return SimpleNamespace(
        job_events=[(row.message.code, dict(row.message.facts)) for row in events],
        unknown=(job.message.code, job.message.facts),
        told=[message for row in told for message in (row.title, row.text)],
        proof=Node.objects.get().evict_proof,
        alarms=[(row.rule.key, row.subject, row.facts) for row in Alarm.objects.order_by("pk")],
    )
