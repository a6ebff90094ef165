"""More of what Alice has, for the world: studies, pipelines and secrets."""

from __future__ import annotations

from typing import Any

from accounts.models import User
from accounts.services import named_secrets
from inference.pipelines import loop, runs, trigger_settings, writing
from inference.pipelines.models import StepApproval
from training.studies import creating as studies

Ids = list[tuple[str, dict[str, Any]]]


def ids(owner: User) -> Ids:
    """Patterns of routes, and the numbers that stand in them."""
    secret = named_secrets.add(user=owner, name="HF_TOKEN", value="never told")
    return [(r"^account/secrets/|v1/\^secrets/", {"pk": secret.pk}), *_studies(owner), *_pipelines(owner)]


def _studies(owner: User) -> Ids:
    request = studies.StudyRequest(
        name="hunt", training={"command": "true", "gpus_per_node": 0}, space=["x = 1 .. 2"], objectives=["loss"]
    )
    return [(r"studies/", {"pk": studies.create(user=owner, request=request).pk})]


def _pipelines(owner: User) -> Ids:
    steps = {"ask": {"kind": "approve"}, "ship": {"kind": "notify", "with": {"text": "x"}, "when": "ask.passed"}}
    made = writing.create(user=owner, name="weekly", spec={"steps": steps})
    run = runs.start(user=owner, version=writing.newest_or_refused(made))
    loop.advance_run(run.pk)
    hook, _secret = trigger_settings.create(made, user=owner, kind="webhook")
    return [
        (r"pipelines/approvals/|pipeline-approvals/", {"pk": StepApproval.objects.get(step_run__run=run).pk}),
        (r"pipelines/triggers/|pipeline-triggers/|pipeline-hooks/", {"pk": hook.pk}),
        (r"pipelines/runs/|pipeline-runs/", {"pk": run.pk, "verb": "cancel"}),
        (r"pipelines/", {"pk": made.pk, "number": 1}),
    ]
