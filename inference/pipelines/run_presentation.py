"""What pages and the API show of a run: each step's newest attempt, with counts of its items."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from statistics import median
from typing import Any

from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from accounts.models import User
from accounts.services import named_secrets
from aiplatform.lib import times
from datasets.models import DatasetVersion
from inference.evaluation.models import Evaluation
from inference.pipelines import metric_names
from inference.pipelines.advance import FINAL, STEP_ITEM
from inference.pipelines.cache import TABLES
from inference.pipelines.graph import Spec
from inference.pipelines.kinds import KINDS, TYPES
from inference.pipelines.models import PipelineRun, PipelineTrigger, StepApproval, StepRun
from inference.registry.models import ModelVersion
from inference.serving.models import Service
from workers.core import kinds as job_kinds
from workers.core.clock import now
from workers.jobs import job_tabs

MAX_METRICS = 3  # of one step in a row
MAX_LISTED = 10  # items of a list
MAX_OBJECTS = 20  # things that a question shows
LATELY = 5  # runs that tell how long a step takes
MAX_EARLIER = 1000  # rows of them that are read
TURNED_DOWN = ("refused", "no", "too_few")  # answers that end a way
PEOPLE = ("approve", "people")  # kinds that take as long as people do


def is_open(run: PipelineRun, user: User) -> bool:
    """Whether a user sees all details of a run; users who only see its pipeline see states and metrics.

    Inputs and parameters are visible to the owner only: names of private data, parameters, webhook payloads, errors.

    What it runs on and what it is told are matters of its owner: names of private data, parameters, what a webhook
    brought, what went wrong.
    """
    annotated = getattr(run, "is_open", None)
    return PipelineRun.objects.open_to(user).filter(pk=run.pk).exists() if annotated is None else bool(annotated)


def steps_of(run: PipelineRun, user: User) -> dict[str, dict[str, Any]]:
    """Return each step of a run by name, as JSON, limited to what this user may see."""
    rows = run.step_runs.filter(item=STEP_ITEM).defer("kept").select_related("job", "run", "cached_from__run__pipeline")
    newest = {row.step: row for row in rows.order_by("attempt")}
    items = run.step_runs.exclude(item=STEP_ITEM).order_by("attempt").values_list("step", "item", "state")
    counts: dict[str, Counter[str]] = {}
    for (step, _item), state in {(step, item): state for step, item, state in items}.items():
        counts.setdefault(step, Counter())[state] += 1
    if not is_open(run, user):
        outer = {key: row for key, row in newest.items() if "/" not in key}  # a pipeline inside may be a private one
        return {key: _closed(_shown(row, counts.get(key, Counter()), None, user), user) for key, row in outer.items()}
    approvals = {
        approval.step_run_id: approval
        for approval in StepApproval.objects.filter(step_run__run=run).prefetch_related("people")
    }
    return {key: _shown(row, counts.get(key, Counter()), approvals.get(row.pk), user) for key, row in newest.items()}


def _shown(row: StepRun, counts: Counter[str], approval: StepApproval | None, user: User) -> dict[str, Any]:
    job = row.job
    may_see = job is not None and (job.owner_id == user.pk or user.sees_everything or row.run.owner_id == user.pk)
    message = str(row.message)
    if not message and row.state == StepRun.State.STARTED and job is not None:
        message = str(job.message)
    answered = answer_word(row)
    return {
        "state": row.state,
        "label": answered or row.label,
        "tone": "skipped" if row.answer in TURNED_DOWN else row.state,
        "attempt": row.attempt,
        "message": message,
        "mend": named_secrets.PAGE if row.message.code == "secret.missing" and row.run.owner_id == user.pk else "",
        "answer": row.answer,
        "outputs": row.outputs,
        "job": row.job_id,
        "job_state": job.state if job else "",
        "progress": job.progress if job and row.state == StepRun.State.STARTED else None,
        "phase": job.get_phase_display() if job and row.state == StepRun.State.STARTED else "",
        "url": job_kinds.url_of(job) if job and may_see else "",
        "log": job_tabs.path(job.pk, job_tabs.CONSOLE) if job and may_see else "",
        "started": row.started_at,
        "ended": row.ended_at,
        "elapsed_s": (took := elapsed_s(row.started_at, row.ended_at)),
        "took": "" if took is None else times.format_duration(took),
        "cached": _earlier(row),
        "items": dict(counts),
        "approval": _approval_to_json(approval, user) if approval and row.state == StepRun.State.ASKING else None,
    }


def answer_word(row: StepRun) -> str:
    """What a step that decides has answered, as its port is called; "" for all others."""
    kind = KINDS.find(str(row.run.spec["steps"].get(row.step, {}).get("kind", ""))) if row.answer else None
    port = kind.output(row.answer) if kind else None
    return str(port.label) if port else ""


def _closed(shown: dict[str, Any], user: User) -> dict[str, Any]:
    """Return a step as seen by users who see only the pipeline."""
    outputs = {port: _closed_output(value, user) for port, value in shown["outputs"].items()}
    return shown | {"message": "", "cached": None, "outputs": outputs}


def _closed_output(value: Any, user: User) -> Any:
    if isinstance(value, list):
        return [_closed_output(item, user) for item in value]
    kind = str(value.get("type", "")) if isinstance(value, Mapping) else ""
    if kind == "figures":
        return {name: value[name] for name in ("type", "values", "step") if name in value}
    if kind in TABLES and TABLES[kind][0].objects.visible_to(user).filter(pk=value.get("id") or 0).exists():
        return value
    return {"type": kind, "label": str(TYPES.get(kind, "–"))}


def elapsed_s(begun: datetime | None, ended: datetime | None) -> float | None:
    """How long something has taken, in seconds; None while it has not begun."""
    return None if begun is None else round(((ended or now()) - begun).total_seconds(), 1)


def took_s(run: PipelineRun) -> float:
    """How long a run has taken, in seconds, without the time between an end and a retry."""
    return round(max(0.0, (elapsed_s(run.created_at, run.ended_at) or 0.0) - run.idle_s), 1)


def _earlier(row: StepRun) -> dict[str, Any] | None:
    if row.cached_from is None:
        return None
    run = row.cached_from.run
    return {"run": run.pk, "label": str(run), "at": row.cached_from.ended_at, "url": run_page(run)}


def _approval_to_json(approval: StepApproval, user: User) -> dict[str, Any]:
    people = list(approval.people.all())
    answered = approval.answers.filter(person=user).exists()
    return {
        "id": approval.pk,
        "question": approval.question,
        "people": [person.username for person in people],
        "needed": approval.needed,
        "expires": approval.expires_at,
        "mine": user.pk in {person.pk for person in people} and not answered,
    }


def run_page(run: PipelineRun) -> str:
    """The page of a run."""
    return reverse("pipelines:run", args=[run.pk])


def is_live(run: PipelineRun) -> bool:
    """Whether its page has to be refreshed."""
    return run.state == PipelineRun.State.RUNNING


def counts_of(steps: Mapping[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """Count steps by state with their labels, final states first."""
    counts = Counter((item["state"], item["label"]) for item in steps.values())
    ordered = sorted(counts.items(), key=lambda item: (item[0][0] not in FINAL, item[0]))
    return [{"label": label, "count": count} for (_state, label), count in ordered]


def times_of(run: PipelineRun) -> dict[str, float]:
    """How long people were waited for, in seconds."""
    rows = run.step_runs.filter(approval__isnull=False, started_at__isnull=False)
    return {"waited_s": sum(elapsed_s(row.started_at, row.ended_at) or 0.0 for row in rows)}


def eta_s(run: PipelineRun, spec: Spec, steps: Mapping[str, Mapping[str, Any]]) -> float | None:
    """How long the run still takes, as its steps took lately; None where one of them has not ended well before.

    The longest way through what is left, beside which all else runs. What waits for people counts for nothing.
    """
    lately: dict[str, list[float]] = {}
    ended = StepRun.objects.filter(run__pipeline=run.pipeline_id, state=StepRun.State.OK, item=STEP_ITEM, approval=None)
    for name, begun, over in ended.order_by("-pk").values_list("step", "started_at", "ended_at")[:MAX_EARLIER]:
        if begun and over:
            lately.setdefault(name, []).append((over - begun).total_seconds())
    left: dict[str, float] = {}
    for key in spec.order():
        before = max((left[source] for source in spec.steps[key].sources if source in left), default=0.0)
        shown = steps.get(key, {})
        if shown.get("state") in FINAL or spec.steps[key].kind in PEOPLE:
            left[key] = before
        elif key not in lately:
            return None
        else:
            usual = median(lately[key][:LATELY])
            left[key] = before + max(0.0, usual - (shown.get("elapsed_s") or 0.0))
    return round(max(left.values(), default=0.0), 1)


def results_of(outputs: Mapping[str, Any], user: User) -> list[dict[str, str]]:
    """Return the outputs of a step as short texts with links to the pages this user may see."""
    results = []
    for _port, value in sorted(outputs.items()):
        results.append(_result(value, user))
        if isinstance(value, list):
            results += [
                _result(item, user) for item in value[:MAX_LISTED] if isinstance(item, Mapping) and "type" in item
            ]
    return results


def steps_before(spec: Spec, key: str) -> list[str]:
    """Return the steps that a step follows, directly or not, in their order."""
    earlier, open_ = set[str](), list(spec.steps[key].sources)
    while open_:
        if (name := open_.pop()) not in earlier:
            earlier.add(name)
            open_ += spec.steps[name].sources
    return [name for name in spec.order() if name in earlier]


def _result(value: Any, user: User) -> dict[str, str]:
    if isinstance(value, list):
        return {"text": ngettext("%(count)s item", "%(count)s items", len(value)) % {"count": len(value)}, "url": ""}
    if value.get("type") == "figures":
        rows = metric_names.rows(value.get("values", {}))
        text = ", ".join(f"{name} {number}" for name, number in rows[:MAX_METRICS])
        more = " …" if len(rows) > MAX_METRICS else ""
        evaluation = value.get("evaluation")
        there = evaluation and Evaluation.objects.visible_to(user).filter(pk=evaluation).exists()
        return {"text": text + more, "url": reverse("inference:evaluation-detail", args=[evaluation]) if there else ""}
    return {"text": str(value.get("label", "")), "url": page_of(value, user)}


def page_of(reference: Mapping[str, Any], user: User) -> str:
    """Return the page of a reference; "" where there is none for this user."""
    number = int(reference.get("id") or 0)
    if reference.get("type") == "dataset":
        ids = DatasetVersion.objects.visible_to(user).filter(pk=number).values_list("dataset_id", "number").first()
        return f"{reverse('datasets:detail', args=[ids[0]])}?version={ids[1]}" if ids else ""
    if reference.get("type") == "model":
        ids = ModelVersion.objects.visible_to(user).filter(pk=number).values_list("model_id", "number").first()
        return f"{reverse('inference:model-detail', args=[ids[0]])}?version={ids[1]}" if ids else ""
    if reference.get("type") == "service" and number:
        there = Service.objects.visible_to(user).filter(pk=number).exists()
        return reverse("inference:service-detail", args=[number]) if there else ""
    return ""


def item_words(counts: Mapping[str, int]) -> str:
    """Return the progress of the items of a step: "3 Completed, 1 Failed"."""
    labels = dict(StepRun.State.choices)
    return ", ".join(f"{count} {labels.get(state, state)}" for state, count in sorted(counts.items()))


TRIGGERS = {
    "manual": gettext_lazy("Manually"),
    "api": gettext_lazy("By API"),
    "cron": gettext_lazy("By schedule"),
    "dataset": gettext_lazy("New dataset version"),
    "drift": gettext_lazy("Drift of an endpoint"),
    "alarm": gettext_lazy("Alert"),
    "webhook": gettext_lazy("Webhook"),
}


def trigger_word(run: PipelineRun) -> str:
    """What began a run."""
    by = str(run.trigger.get("by", "manual"))
    return str(TRIGGERS.get(by, by))


def trigger_words(trigger: PipelineTrigger) -> str:
    """Return a description of the event that a trigger waits for."""
    texts = {
        "cron": f"{trigger.schedule} · {trigger.zone}",
        "dataset": str(trigger.dataset or ""),
        "drift": str(trigger.service or ""),
        "alarm": trigger.rule or str(_("any alert")),
    }
    return texts.get(trigger.kind, "")
