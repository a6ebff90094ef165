"""Conversions that have run: the real program, alone in its run as a job has it."""

from __future__ import annotations

from inference.conversion import conversions
from inference.conversion.kind import ConversionKind
from inference.conversion.models import Conversion
from tests.inference import programs
from workers.core.runs import RunDir

PHASES = {"loading", "predicting", "computing", "converting", "calibrating", "measuring"}
TARGETS = ("fp32", "fp16", "int8", "int8_dynamic")


def program(conversion: Conversion, attempt: int = 1, **env: str) -> tuple[list[str], dict[str, str], RunDir]:
    """Command, environment and run directory of an attempt, as the kind prepares it."""
    return programs.prepared(ConversionKind(), conversion.job, attempt, **env)


def ran(conversion: Conversion) -> str:
    """Run its program and let the kind publish what it left; gives its log."""
    log = programs.ran(ConversionKind(), conversion.job)
    conversion.refresh_from_db()
    return log


def submitted(user, model, data, **options: object) -> Conversion:
    """Queued with few pictures for calibration."""
    params = {"targets": TARGETS, "looks": 8, "keep": "all", "split": "test"} | options
    return conversions.submit(user=user, model_version=model, version=data, **params)
