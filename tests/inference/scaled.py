"""A service that may have several servers: where they are, what they tell, and steps of its scaling."""

from __future__ import annotations

from inference.serving import model_swaps
from inference.serving.models import Service
from inference.serving.scaling import rule, scaling
from tests.inference.running import set_state

BUSY = rule.LoadSample(queue_s=1.0, busy=1.0, refused=0)
CALM = rule.LoadSample(queue_s=0.001, busy=0.1, refused=0)
ENOUGH = rule.LoadSample(0.1, 0.9, 0)


def fresh(service: Service) -> Service:
    """The row as it is now."""
    row: Service = Service.objects.select_related("job", "owner", "model_version").get(pk=service.pk)
    return row


def run_due(service: Service) -> Service:
    """Run the steps that are due."""
    scaling.scale(model_swaps.refresh(fresh(service)))
    return fresh(service)


def up(row, places, port: int) -> None:
    """Let a further server run at a port."""
    set_state(row.job, "running")
    places[row.job_id] = ("127.0.0.1", port)


def ending(job) -> bool:
    """Whether a job is over or was requested to stop."""
    job.refresh_from_db()
    return job.is_final or job.desired == "stop"
