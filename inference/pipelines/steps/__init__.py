"""What a step can do: one file for each group of the palette."""

from __future__ import annotations

from inference.pipelines.kinds import KINDS


def register() -> None:
    """Register all step kinds; called once when the app is ready."""
    from inference.pipelines.steps import data, deciding, judging, nesting, other, training  # noqa: PLC0415  tables

    KINDS.register(
        data.DatasetStep(),
        data.ItemsStep(),
        deciding.ApproveStep(),
        deciding.GateStep(),
        deciding.ConditionStep(),
        training.TrainStep(),
        judging.EvaluateStep(),
        nesting.PipelineStep(),
        nesting.InputStep(),
        other.CommandStep(),
        other.NotifyStep(),
    )
