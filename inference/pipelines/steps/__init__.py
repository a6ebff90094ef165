"""What a step can do: one file for each group of the palette."""

from __future__ import annotations

from inference.pipelines.kinds import KINDS


def register() -> None:
    """Register all step kinds; called once when the app is ready."""
    from inference.pipelines.steps import (  # noqa: PLC0415  they read tables
        annotating,
        comparing,
        data,
        deciding,
        devices,
        judging,
        nesting,
        other,
        predicting,
        registering,
        searching,
        sending,
        serving,
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
        deciding.ApproveStep(),
        deciding.GateStep(),
        deciding.ConditionStep(),
        training.TrainStep(),
        searching.StudyStep(),
        judging.EvaluateStep(),
        registering.RegisterStep(),
        registering.ConvertStep(),
        serving.ServeStep(),
        devices.EdgeStep(),
        sending.PushStep(),
        predicting.PredictStep(),
        comparing.CompareStep(),
        nesting.PipelineStep(),
        nesting.InputStep(),
        other.CommandStep(),
        other.NotifyStep(),
        sending.WebhookStep(),
    )
