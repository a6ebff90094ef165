"""Runs whose model is there already, and steps of theirs that go on for a while."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.utils.timezone import now

from accounts.models import User
from datasets.models import DatasetVersion
from inference.pipelines import loop, runs, writing
from inference.pipelines.models import Pipeline, PipelineRun, StepRun, reference
from inference.pipelines.steps import long_running
from inference.registry.models import ModelVersion
from tests.pipelines.made import pipeline, step


def shipped(
    user: User, model: ModelVersion, data: DatasetVersion, made: Pipeline | None = None, **entry: Any
) -> PipelineRun:
    """A run of one step, `it`, after a training that has created this model, advanced once.

    Args:
        given: the step; `data` among its inputs is the dataset version.
    """
    if made is None:
        steps = {
            "cells": {"kind": "dataset", "with": {"dataset": data.dataset.name}},
            "train": {"kind": "train", "from": {"data": "cells.data"}},
            "it": {"from": {"model": "train.model"}, **entry},
        }
        made = pipeline(user, steps, name=f"p{Pipeline.objects.count()}")
    run = runs.start(user=user, version=writing.newest_or_refused(made))
    figures = {"type": "figures", "values": {"AP50": 0.91}, "label": "train", "step": "train"}
    outputs = {"model": reference("model", model), "figures": figures}
    StepRun.objects.filter(run=run, step="train").update(state="ok", outputs=outputs)
    loop.advance_run(run.pk)
    run.refresh_from_db()
    return run


def poll(run: PipelineRun, *, aside: bool = False) -> StepRun:
    """Poll its step, after its background work where `aside` is true."""
    if aside:
        long_running.do_aside(step(run, "it").pk)
    StepRun.objects.filter(run=run, step="it", state="started").update(look_at=now() - timedelta(seconds=1))
    loop.advance_due()
    run.refresh_from_db()
    return step(run, "it")
