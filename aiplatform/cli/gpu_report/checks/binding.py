"""Checks of which GPU a job gets: visible devices, device files, start queues, the reservation itself."""

from __future__ import annotations

from aiplatform.cli.gpu_report import jobs
from aiplatform.cli.gpu_report.definitions import Context, NotAvailable, Values
from workers.execution import tickets
from workers.execution.measurement_jobs import device_row
from workers.supervisor import sandbox

PING_S = 5.0


def visible(context: Context) -> Values:
    """Start a job on each reserved GPU at the same time, and compare what each sees."""
    running = [(card, jobs.start(context, "binding.py", context.device, devices=[card])) for card in context.devices]
    visible, same, foreign = 0, True, 0
    for card, job in running:
        result = jobs.result(job, context.seconds)
        own = f"nvidia{tickets.minor_of(device_row(card))}"
        visible = max(visible, result["visible"])
        if card.parent is None:  # CUDA names the whole GPU of a MIG slice
            same = same and _plain(result["uuid"]) == _plain(card.uuid)
        foreign += len(set(result["opened"]) - {own})
    isolated = tickets.tier()[0] >= sandbox.BUBBLEWRAP
    return {"jobs": len(running), "visible": visible, "same": same} | ({"foreign": foreign} if isolated else {})


def _plain(uuid: str) -> str:
    return uuid.lower().removeprefix("gpu-")


def queues(context: Context) -> Values:
    """Compare the start queues of GPUs with those that Celery workers of this node read, and the reservation's job."""
    from django.conf import settings

    from aiplatform.celery import app
    from workers.core import queues as names
    from workers.core.runs import RunDir
    from workers.supervisor import records

    if context.job is None:
        raise NotAvailable("The platform is not running on this node.")
    answers = app.control.inspect(timeout=PING_S).active_queues() or {}
    served = {queue["name"] for queues in answers.values() for queue in queues}
    unserved = [card for card in context.devices if names.gpu(settings.NODE, card.index) not in served]
    launch = records.read(RunDir.for_attempt(context.job, 1).path / records.LAUNCH) or {}
    bound = {part for part in launch.get("env", {}).get("CUDA_VISIBLE_DEVICES", "").split(",") if part}
    return {"unserved": len(unserved), "bound": bound == {card.uuid for card in context.devices}}
