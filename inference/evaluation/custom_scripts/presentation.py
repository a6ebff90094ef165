"""What pages and the report say of the script of an evaluation."""

from __future__ import annotations

from typing import Any

from inference.evaluation.custom_scripts import scripts
from inference.evaluation.models import Evaluation
from training.programs import script as command_lines
from workers.jobs import job_tabs


def facts(evaluation: Evaluation) -> dict[str, Any]:
    """Row, words, parameters, image, problems and console of a script; nothing secret."""
    row = evaluation.script
    use = getattr(evaluation.job, "image_use", None)
    return {
        "row": row,
        "arguments": command_lines.shown(row.arguments),
        "params": sorted(scripts.shown_params(evaluation).items()),
        "image": use.name if use else "",
        "problems": scripts.problems(row),
        "console": job_tabs.path(evaluation.job_id, job_tabs.CONSOLE),
    }
