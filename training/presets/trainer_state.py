"""Checkpoints of a training: the full state needed to resume it bit for bit, written and read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from . import checkpoints, phases, rng
from .budget import Pace
from .run import Refused
from .task import Position

if TYPE_CHECKING:
    from .trainer import Trainer


def save(trainer: Trainer, *, best: bool = False) -> None:
    """Write a checkpoint (first rank) and wait until it is on disk (all ranks)."""
    began, at = trainer.run.clock(), trainer.at
    at.step_s = trainer.pace.step_s
    if trainer.ranks.leads:
        state = {
            "model": trainer.task.model.state_dict(),
            "average": trainer.average.state_dict(),
            "optimizer": trainer.optimizer.state_dict(),
            "position": {**vars(at), "used_s": trainer.used_s(), "phase_s": trainer.phases.times()},
            "rows": trainer.task.rows,
            "batch_size": trainer.batch_size,
            "seed": trainer.params["seed"],
            "rng": rng.state(),
        }
        checkpoints.write(
            trainer.run.checkpoint_dir,
            step=at.step,
            fill=lambda folder: torch.save(state, folder / "state.pt"),
            metric=at.history[-1][trainer.task.metric] if best else None,
            best=best,
            extra={"epoch": at.epoch, "world_size": trainer.ranks.world, **trainer.task.facts},
        )
    trainer.ranks.wait()
    trainer.saved_at = trainer.run.clock()
    at.last_checkpoint_s = trainer.saved_at - began
    at.checkpoint_s += at.last_checkpoint_s
    trainer.reported_at += at.last_checkpoint_s


def score_last(trainer: Trainer, metric: float) -> None:
    """Give the checkpoint of the end its score; it is the best one where all points were scored on all images."""
    at = trainer.at
    comparable = at.scored_part in (None, 1.0)
    checkpoints.set_metric(
        trainer.run.checkpoint_dir, at.step, metric, best=comparable and (at.best is None or metric > at.best)
    )


def restore(trainer: Trainer) -> None:
    """Go on from the newest whole checkpoint that the run names or its own folder holds.

    Raises:
        Refused: the named one is not whole, or it does not fit the model.
    """
    run = trainer.run
    checkpoint = checkpoints.newest(run.resume_from, run.checkpoint_dir)
    if checkpoint is None:
        if run.resume_from is not None:
            raise Refused(f"There is no whole checkpoint at {run.resume_from} to go on from.")
        return
    state = torch.load(checkpoint / "state.pt", map_location=trainer.ranks.device, weights_only=True)
    try:
        trainer.task.model.load_state_dict(state["model"])
        trainer.average.load_state_dict(state["average"])
        trainer.optimizer.load_state_dict(state["optimizer"])
    except (RuntimeError, ValueError, KeyError) as error:
        raise Refused(
            f"{checkpoint.name} does not fit: it is of another architecture, other classes or an older release of this "
            f"preset. Begin a new training instead. {error}"
        ) from error
    trainer.at = _position(state["position"])
    trainer.phases.spent, trainer.pace = dict(trainer.at.phase_s), Pace(trainer.at.step_s)
    own = (trainer.task.rows, trainer.batch_size, trainer.params["seed"])
    if (state["rows"], state["batch_size"], state["seed"]) != own:
        trainer.at.batch = 0  # other data or batches: this epoch begins again
    rng.restore(state["rng"])
    trainer.log_line(f"restored from {checkpoint.name}, {trainer.at.used_s:.0f} s of work")


def _position(stored: dict[str, Any]) -> Position:
    """Return the position of a checkpoint; for an older release the learning time is derived."""
    began_s = stored.pop("began_s", None) or 0.0
    if "phase_s" not in stored:
        learned_s = max(stored["used_s"] - began_s - stored["eval_s"] - stored["checkpoint_s"], 0.0)
        stored["phase_s"] = {phases.PACKING: began_s, phases.LEARNING: learned_s, phases.SCORING: stored["eval_s"]}
    return Position(**stored)


def take_best(trainer: Trainer) -> None:
    """Replace the average by that of the best point if its checkpoint is still complete."""
    run = trainer.run
    for home in (run.checkpoint_dir, run.resume_from and run.resume_from.parent):
        best = (home / "best").resolve() if home else None
        metadata = checkpoints.meta(best) if best else None
        if best and metadata and metadata["metric"] == trainer.at.best:
            state = torch.load(best / "state.pt", map_location=trainer.ranks.device, weights_only=True)
            trainer.average.load_state_dict(state["average"])
            trainer.log_line(f"the model is that of step {metadata['step']}, the best point")
            return
    trainer.log_line("the checkpoint of the best point is gone: the model is that of the last step")
