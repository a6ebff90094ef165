"""What a step can do: one file for each group of the palette."""

from __future__ import annotations

from inference.pipelines.kinds import KINDS


def register() -> None:
    """Register all step kinds; called once when the app is ready."""
    from inference.pipelines.steps import (  # noqa: PLC0415  they read tables
        data,
        deciding,
        devices,
        judging,
        other,
        predicting,
        registering,
        sending,
        serving,
        training,
    )

    KINDS.register(
        data.DatasetStep(),
        data.ItemsStep(),
        deciding.ApproveStep(),
        deciding.GateStep(),
        deciding.ConditionStep(),
        training.TrainStep(),
        judging.EvaluateStep(),
        registering.RegisterStep(),
        registering.ConvertStep(),
        serving.ServeStep(),
        devices.EdgeStep(),
        sending.PushStep(),
        predicting.PredictStep(),
        other.CommandStep(),
        other.NotifyStep(),
        sending.WebhookStep(),
    )
