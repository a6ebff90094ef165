"""The trainer of all presets: training loop, budget, control commands, checkpoints.

A task (detect.py, classify.py) brings a model, batches and a loss; everything that makes a training a good job
is here. Whatever depends on the clock or on the control file is decided by the first rank and sent to all, so
that every rank does the same thing at the same step.
"""

from __future__ import annotations

import json
import math
import time
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from . import accumulate, cores, lanes, microbatches, phases, plateau, points, samples, timing, trainer_state
from .average import Average
from .budget import Budget, Pace, learning_rate
from .ranks import Ranks, parameters_of, share_norms
from .run import COMPLETED, CONTROL_COMMANDS, FINISH_QUICK, STARTED, SUSPENDED, TERMINATED, Refused, Run, log_line
from .show_modes import MODES
from .task import Position, Task
from .weights import load_initial

LINE_S, REPORT_S, PAUSE_S = 30.0, 2.0, 0.2
CHECKPOINT_SHARE = 0.01  # checkpoints beyond the promised interval are made while they cost less than this
TERMINATE = len(CONTROL_COMMANDS)  # one more command, which comes as a signal


class Trainer:
    """Trains `task` until its budget is used or a control command ends it."""

    def __init__(self, task: Task, run: Run, params: dict[str, Any], ranks: Ranks) -> None:
        self.task, self.run, self.params, self.ranks = task, run, params, ranks
        self.anneal, self.patience = plateau.chosen(params)
        self.parts_of_batch = params["accumulate"] or 1
        apart = ranks.world * self.parts_of_batch
        self.batch_size = min(params["batch_size"], task.rows) // apart * apart
        if not self.batch_size:
            parts = f"{ranks.world} ranks" + (f" with {self.parts_of_batch} parts each" if apart > ranks.world else "")
            raise Refused(f"{task.rows} images and batch_size {params['batch_size']} do not fill {parts}.")
        self.per_epoch = task.rows // self.batch_size
        limits = [params["steps"] or math.inf, params["epochs"] * self.per_epoch or math.inf]
        self.budget = Budget(params["budget_minutes"] * 60, min(limits))

        self.at = Position()
        load_initial(self)
        task.model = share_norms(task.model, ranks).to(ranks.device).to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # an overload that torch's stubs leave out
        self.average = Average(task.model, params["ema"])
        self.optimizer = task.optimizer()
        self.rates = [group["lr"] for group in self.optimizer.param_groups]
        self.paused_s = self.saved_at = 0.0
        self.phases = phases.Phases(run, tells=ranks.leads)
        self.waiting, self.slowdown, self.step_s, self.pace = cores.Waiting(), 1.0, 0.0, Pace()
        trainer_state.restore(self)
        pays = ranks.device.type == "cuda" or (task.dense and cores.multiplies_bfloat16())
        self.in_bfloat16 = bool(params["amp"] and pays)
        self.model = task.model
        if not params["accumulate"]:
            self.parts_of_batch = microbatches.find_count(self)
            self.log_line(f"learning from each batch of {self.batch_size} in {self.parts_of_batch} parts: what fits")
        self.model = self._wrapped(task.model)
        unsplit = self.parts_of_batch == 1 and not params["compile"]
        self.lanes = lanes.for_learning(task.model, ranks, self.batch_size) if unsplit else None
        self.parts: dict[str, Tensor] = {}
        self.parts_steps = 0
        self.reported_at = self.lined_at = self.looked_at = self.run.clock()
        self.reader = ThreadPoolExecutor(1)
        self.order = -1, torch.empty(0)  # epoch, and its rows in the order in which they are learned from

    # The road ---------------------------------------------------------------------------------------------

    def train(self) -> int:
        """Return the exit code: 0 completed, 75 suspended, 143 ended by a signal."""
        if show := MODES.get(self.run.show):
            return show(self)
        self.run.listen()
        ahead: tuple[tuple[int, int], Future[Any]] | None = None
        self.phases.enter(phases.LEARNING)
        self._look_at_cores()
        self.saved_at = self.reported_at = self.run.clock()
        while True:
            command, progress, reporting = self._agree()
            if command == "pause":
                self._rest()
                continue
            if command in ("suspend", "terminate"):
                trainer_state.save(self)
                self.log_line(f"{'suspended' if command == 'suspend' else 'ended by a signal'} at step {self.at.step}")
                return SUSPENDED if command == "suspend" else TERMINATED
            if command == FINISH_QUICK:
                return self._leave()
            if command == "finish" or progress >= 1:
                break
            if plateau.over(self._scores(), patience=self.patience, anneal=self.anneal):
                self.log_line(
                    f"nothing got better for {self.patience} points: the training ends at step {self.at.step}"
                )
                return self._finish(best=True)
            position = (self.at.epoch, self.at.batch)
            now = ahead[1] if ahead and ahead[0] == position else self.read(position)
            following = (position[0], position[1] + 1) if position[1] + 1 < self.per_epoch else (position[0] + 1, 0)
            batch, ahead = now.result(), (following, self.read(following))
            began = self.run.clock()
            self.learn(batch, progress)
            took = self.run.clock() - began
            self.step_s = took if not self.step_s else self.step_s + 0.1 * (took - self.step_s)
            if reporting or self.params["show_steps"]:
                self._report(progress)
            self._end_of_step()
        return self._finish()

    def read(self, position: tuple[int, int]) -> Future[Any]:
        """Fetch the batch at (epoch, batch); the order of an epoch depends only on the seed and its number."""
        epoch, batch = position
        if self.order[0] != epoch:
            self.order = epoch, torch.randperm(self.task.rows, generator=self._generator(1, epoch))
        rows = self.order[1][batch * self.batch_size : (batch + 1) * self.batch_size].tolist()
        return self.reader.submit(self.task.load, rows[self._mine()])

    def learn(self, batch: Any, progress: float) -> None:
        """Do one optimizer step."""
        share = self._rate(progress)
        for group, rate in zip(self.optimizer.param_groups, self.rates, strict=True):
            group["lr"] = rate * share
        self.model.train()
        parts = self._gradients(batch, self.draws(self.at.step))
        if self.ranks.device.type == "cpu":  # on a GPU looking would mean waiting; there every report looks
            self._demand_finite(parts)
        nn.utils.clip_grad_norm_(parameters_of(self.task.model), 5.0)
        self.optimizer.step()
        self.average.follow(self.task.model, self.at.step)
        for name, value in parts.items():
            self.parts[name] = self.parts[name] + value.detach() if name in self.parts else value.detach()
        self.parts_steps += 1
        at = self.at
        at.step, at.batch = at.step + 1, at.batch + 1
        if at.batch == self.per_epoch:
            at.epoch, at.batch = at.epoch + 1, 0
        if self.params["keep_ms"]:
            time.sleep(self.params["keep_ms"] / 1000)

    def _rate(self, progress: float) -> float:
        """The learning rate as a share of its maximum."""
        warmup = self.params["warmup"]
        if self.anneal != plateau.NAME:
            return learning_rate(progress, warmup=warmup, anneal=self.anneal)
        return plateau.learning_rate(self._scores(), self.at.step, patience=self.patience, warm=bool(warmup))

    def _scores(self) -> list[float]:
        """The figure of merit at each scored point so far."""
        return [point[self.task.metric] for point in self.at.history]

    def draws(self, step: int) -> dict[str, Tensor]:
        """This rank's random choices for the batch of a step."""
        draws = self.task.draw(self._generator(2, step), self.batch_size)
        return {name: values[self._mine()].to(self.ranks.device) for name, values in draws.items()}

    def _gradients(self, batch: tuple[Tensor, ...], draws: dict[str, Tensor]) -> dict[str, Tensor]:
        """Compute the loss of a batch, in its parts, and leave its gradients on the model."""
        if self.lanes:
            return self.lanes.learn(self.task.model, self.loss, batch, draws)
        self.optimizer.zero_grad(set_to_none=True)
        if self.parts_of_batch > 1:
            return accumulate.learn(self.model, self.loss, batch, draws, self.ranks, self.parts_of_batch)
        parts = self.loss(batch, draws, self.ranks)
        torch.stack(list(parts.values())).sum().backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
        return parts

    def loss(self, batch: tuple[Tensor, ...], draws: dict[str, Tensor], ranks: Ranks) -> dict[str, Tensor]:
        """The task's loss of a batch, in its parts."""
        with torch.autocast(self.ranks.device.type, torch.bfloat16) if self.in_bfloat16 else nullcontext():
            return self.task.loss(self.model, batch, draws, ranks)

    def _end_of_step(self) -> None:
        """Score and save where it is time for it."""
        phases.advance(0)
        at, now, used = self.at, self.run.clock(), self.used_s()
        scoring = self._point_due(used)
        cheap = at.checkpoint_s + at.last_checkpoint_s <= CHECKPOINT_SHARE * used
        saving = now - self.saved_at >= self.params["checkpoint_minutes"] * 60
        saving = saving or (at.batch == 0 and cheap and now - self.saved_at >= LINE_S)
        scoring, saving = (bool(due) for due in self.ranks.highest(*self._if_leading(scoring, saving)))
        best = False
        if scoring:
            figures = self._score(along_the_way=True)
            best = at.best is None or figures[self.task.metric] > at.best
            at.best = figures[self.task.metric] if best else at.best
        if saving or (best and (self.patience or self.ranks.highest(*self._if_leading(cheap))[0])):
            trainer_state.save(self, best=best)

    def _point_due(self, used_s: float) -> bool:
        """Whether this step is followed by a point of the curve."""
        at, share, progress = self.at, self.params["eval_share"], timing.progress(self)
        if not share:
            return False
        if points.due(progress, at.scored_at):
            return True
        cost_s = timing.score_s(self) * (at.scored_part or self._part())
        return at.batch == 0 and points.affordable(share, progress, used_s=used_s, spent_s=at.eval_s, cost_s=cost_s)

    def _part(self) -> float:
        """Return the share of the images to score a point on: all, and points are rarer, if the end is unknown."""
        return points.part(self.params["eval_share"], whole_s=timing.whole_s(self), score_s=timing.score_s(self))

    def _finish(self, *, best: bool = False) -> int:
        """Score the averaged model, of the end or of the best point, export it, and log the result."""
        if self.parts_steps:  # the last steps belong to the curve, too
            self._report(timing.progress(self))
        trainer_state.save(self)
        if best:
            trainer_state.take_best(self)
        self.run.end_on_signal()
        figures = self._score()
        if self.ranks.leads:
            if not best:
                trainer_state.score_last(self, figures[self.task.metric])
            self.run.output_dir.mkdir(parents=True, exist_ok=True)
            with self.phases.during(
                phases.EXPORTING, step=self.at.step, thought_s=timing.export_s(self), after={}
            ):  # fmt: skip
                self.task.export(self.average.model, self.run.output_dir / "model", figures)
            self.phases.enter(phases.EXPORTING)  # until the program ends
            at = self.at
            ending = {
                "steps": at.step,
                "epochs": round(at.epoch + at.batch / self.per_epoch, 2),
                "seconds": round(self.used_s(), 1),
                "phase_seconds": {phase: round(seconds, 1) for phase, seconds in self.phases.times().items()},
                "eval_seconds": round(at.eval_s, 1),
                "checkpoint_seconds": round(at.checkpoint_s, 2),
                "checkpoint_share": round(at.checkpoint_s / self.used_s(), 5),
                "slowdown": round(self.slowdown, 2),
                **({"weights_taken": at.weights_taken, "weights_of": at.weights_of} if at.weights_of else {}),
                **({"steps_planned": self.budget.last_step} if math.isfinite(self.budget.last_step) else {}),
            }
            summary = {**figures, **ending, "history": at.history}
            (self.run.output_dir / "metrics.json").write_text(json.dumps(summary, indent=1))
            self.phases.report(at.step, {}, {}, {})
            log_line(f"completed after {at.step} steps in {self.used_s():.0f} s")
        self.ranks.wait()
        return COMPLETED

    def _leave(self) -> int:
        """End with the curves alone, without the last scores and without a model, which are not requested."""
        self.run.end_on_signal()
        if self.ranks.leads:
            self.run.output_dir.mkdir(parents=True, exist_ok=True)
            summary = {"steps": self.at.step, "seconds": round(self.used_s(), 1), "history": self.at.history}
            (self.run.output_dir / "metrics.json").write_text(json.dumps(summary, indent=1))
        self.log_line(f"ended at step {self.at.step} without a model, as requested")
        self.ranks.wait()
        return COMPLETED

    # What is wanted, and how far we are ---------------------------------------------------------------------

    def _agree(self) -> tuple[str, float, bool]:
        """Agree with all ranks on what comes next: a command, the progress 0..1, whether this step is reported."""
        command = CONTROL_COMMANDS.index(self.run.requested()) if self.ranks.leads else 0
        command = TERMINATE if self.run.terminated else command
        due = not self.step_s or self.run.clock() - self.reported_at >= REPORT_S  # the first step at once
        code, progress, reporting = self.ranks.highest(command, *self._if_leading(timing.progress(self), due))
        return [*CONTROL_COMMANDS, "terminate"][int(code)], progress, bool(reporting)

    def _if_leading(self, *figures: float) -> list[float]:
        return [float(figure) if self.ranks.leads else 0.0 for figure in figures]

    def used_s(self) -> float:
        """Seconds this job has worked, over all attempts, pauses left out."""
        return self.at.used_s + self.run.clock() - STARTED - self.paused_s

    def _rest(self) -> None:
        """Wait at this step while paused. All ranks loop together, so that none times out."""
        self.log_line(f"paused at step {self.at.step}")
        began = self.run.clock()
        while self._agree()[0] == "pause":
            time.sleep(PAUSE_S)
        paused_s = self.run.clock() - began
        self.paused_s += paused_s
        self.reported_at += paused_s
        self.phases.leave_out(paused_s)
        self.log_line(f"continued at step {self.at.step}")

    # Telling ------------------------------------------------------------------------------------------------

    def log_line(self, line: str) -> None:
        if self.ranks.leads:
            log_line(line)

    def _report(self, progress: float) -> None:
        """Report the mean loss since the last report, and from time to time print a readable line."""
        names, steps, now = list(self.parts), self.parts_steps, self.run.clock()
        means = dict(zip(names, self.ranks.mean(torch.stack([self.parts[n] for n in names]) / steps), strict=True))
        self._demand_finite(means)
        self.parts, self.parts_steps = {}, 0
        elapsed, self.reported_at = now - self.reported_at, now
        self.pace.add(steps, elapsed)
        if not self.ranks.leads:
            return
        at, left = self.at, timing.left(self)
        figures = {f"train/{name}": float(mean) for name, mean in means.items()} if len(means) > 1 else {}
        figures |= {
            "train/loss": sum(float(mean) for mean in means.values()),
            "train/lr": self.optimizer.param_groups[0]["lr"],
            "train/step_ms": round(1000 * elapsed / steps, 2),
            "epoch": round(at.epoch + at.batch / self.per_epoch, 3),
        }
        self.phases.report(at.step, figures, timing.counted(self), left)
        due = self.params["show_steps"] or now - self.lined_at >= LINE_S
        if due and not self.params["no_steps"]:
            self.lined_at = now
            remaining = f"  {sum(left.values()) / 60:.1f} min left" if left is not None else ""
            log_line(
                f"step {at.step}  epoch {figures['epoch']:.1f}  {100 * min(progress, 1.0):.0f} %  "
                f"loss {figures['train/loss']:.4f}  lr {figures['train/lr']:.2g}  "
                f"{figures['train/step_ms']:.0f} ms/step{remaining}"
            )
        if now - self.looked_at >= LINE_S:
            self._look_at_cores()

    def _look_at_cores(self) -> None:
        """Say when the cores became busy with other work: learning then takes longer than a person expects.

        Seldom, however often a step is told: over single steps it goes up and down by ten times, and what the end of
        the training is thought to take, and with it the learning rate, would go with it.
        """
        self.looked_at = self.run.clock()
        before, self.slowdown = self.slowdown, self.waiting.slowdown()
        if self.slowdown >= cores.BUSY > before:
            log_line(
                f"the cores are busy with other work too: everything takes about {self.slowdown:.1f} times as long"
            )

    def _score(self, *, along_the_way: bool = False) -> dict[str, float]:
        """Evaluate the averaged model and keep the figures."""
        at = self.at
        after = {phases.EXPORTING: timing.export_s(self)} if not along_the_way else timing.left(self)
        if along_the_way:
            at.scored_at = self.ranks.highest(*self._if_leading(timing.progress(self)))[0]
            at.scored_part = at.scored_part or self.ranks.highest(*self._if_leading(self._part()))[0]
        rows = points.sample(self.task.score, at.scored_part if along_the_way and at.scored_part else 1.0)
        began, thought_s = self.run.clock(), timing.score_s(self) * len(rows) / max(len(self.task.score), 1)
        mine = len(rows[self.ranks.rank :: self.ranks.world])
        with self.phases.during(phases.SCORING, step=at.step, total=mine, thought_s=thought_s, after=after):
            figures = self.task.evaluate(self.average.model, self.ranks, rows)
            took_s = self.run.clock() - began
            if self.ranks.leads:
                self._keep_samples(figures)
        whole_s = took_s * len(self.task.score) / len(rows)
        at.last_eval_s = (at.last_eval_s + whole_s) / 2 if at.last_eval_s else whole_s
        at.eval_s += took_s
        at.history.append({"step": at.step, **figures})
        self.reported_at += took_s  # scoring is no part of a step's time
        if not along_the_way:
            self.phases.enter(phases.EXPORTING)
        if self.ranks.leads:
            counted = timing.counted(self) if along_the_way else {}
            self.phases.report(at.step, figures, counted, timing.left(self) if along_the_way else after)
            on = f"  on {len(rows)} of {len(self.task.score)} images" if len(rows) < len(self.task.score) else ""
            log_line("  ".join(f"{name} {value:.4f}" for name, value in figures.items()) + f"  step {at.step}{on}")
        return figures

    def _keep_samples(self, figures: dict[str, float]) -> None:
        """Let people see what the model answers now."""
        began = self.run.clock()
        samples.write(self.run.output_dir, self.task, self.average.model, self.at.step, figures)
        took_s = self.run.clock() - began
        self.at.eval_s += took_s
        self.reported_at += took_s

    def _demand_finite(self, parts: dict[str, Tensor]) -> None:
        values = {name: float(value.detach()) for name, value in parts.items()}
        if not all(math.isfinite(value) for value in values.values()):
            named = ", ".join(f"{name} {value:g}" for name, value in values.items())
            raise Refused(f"The loss is no longer a number at step {self.at.step}: {named}. Try a lower lr.")

    # Small things -------------------------------------------------------------------------------------------

    def _wrapped(self, model: nn.Module) -> nn.Module:
        if self.ranks.world > 1:
            places = [self.ranks.device] if self.ranks.device.type == "cuda" else None
            model = DistributedDataParallel(model, device_ids=places, broadcast_buffers=False)
        return torch.compile(model) if self.params["compile"] else model  # type: ignore[return-value]  # a compiled model is called like the model

    def _generator(self, purpose: int, number: int) -> torch.Generator:
        """Random numbers that depend on seed, purpose and number only: nothing to save, nothing to drift."""
        mixed = np.random.SeedSequence([self.params["seed"], purpose, number]).generate_state(1, np.uint64)
        return torch.Generator().manual_seed(int(mixed[0] >> np.uint64(1)))

    def _mine(self) -> slice:
        share = self.batch_size // self.ranks.world
        return slice(share * self.ranks.rank, share * (self.ranks.rank + 1))
