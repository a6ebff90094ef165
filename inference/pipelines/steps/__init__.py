"""What a step can do: one file for each group of the palette."""

from __future__ import annotations

from inference.pipelines.kinds import KINDS


def register() -> None:
    """Register all step kinds; called once when the app is ready."""
    from inference.pipelines.steps import (  # noqa: PLC0415  they read tables
        annotating,
        commands,
        comparison,
        data,
        decisions,
        delivery,
        devices,
        evaluation,
        predicting,
        registering,
        searching,
        serving,
        subpipelines,
        training,
        versions,
    )

    KINDS.register(
        data.DatasetStep(),
        data.ModelStep(),
        data.ItemsStep(),
        versions.FilterStep(),
        versions.SplitStep(),
        versions.MergeStep(),
        annotating.AnnotateStep(),
        annotating.PeopleStep(),
        decisions.ApproveStep(),
        decisions.GateStep(),
        decisions.ConditionStep(),
        training.TrainStep(),
        searching.StudyStep(),
        evaluation.EvaluateStep(),
        registering.RegisterStep(),
        registering.ConvertStep(),
        serving.ServeStep(),
        devices.EdgeStep(),
        delivery.PushStep(),
        predicting.PredictStep(),
        comparison.CompareStep(),
        subpipelines.PipelineStep(),
        subpipelines.InputStep(),
        commands.CommandStep(),
        commands.NotifyStep(),
        delivery.WebhookStep(),
    )
