"""Callbacks that report metrics and obey the platform's actions, in one line of a training.

    Trainer(callbacks=[aip.callbacks.lightning()])                  # lightning or pytorch_lightning
    Trainer(model, args, …, callbacks=[aip.callbacks.transformers()])
    model.fit(x, y, callbacks=[aip.callbacks.keras()])
    xgboost.train(params, data, evals=[…], callbacks=[aip.callbacks.xgboost()])
    aip.callbacks.ultralytics(model).train(data=…)

Each reports what the library logs, at its steps, and ends the training in the library's own way, with its last
checkpoint, when the job is to be suspended or finished early. Libraries are imported when a callback is made.
"""

from __future__ import annotations

import importlib
from typing import Any

from training.presets.run import should_stop

from .reporting import report


def lightning() -> Any:
    """Return a `Callback` for `Trainer(callbacks=[…])` of `lightning` or `pytorch_lightning`.

    Metrics that the module logs (`self.log`) are reported at the global step: those of training steps every
    `log_every_n_steps`, all others after the epoch and the validation.
    """
    try:
        base: Any = importlib.import_module("lightning.pytorch").Callback
    except ImportError:
        base = importlib.import_module("pytorch_lightning").Callback

    class AipCallback(base):
        def on_train_batch_end(self, trainer: Any, *_: Any) -> None:
            if trainer.is_global_zero and trainer.global_step % max(1, trainer.log_every_n_steps) == 0:
                report(trainer.global_step, dict(trainer.logged_metrics))
            if should_stop():
                trainer.should_stop = True

        def on_train_epoch_end(self, trainer: Any, *_: Any) -> None:
            self._report_all(trainer)

        def on_validation_end(self, trainer: Any, *_: Any) -> None:
            self._report_all(trainer)

        def _report_all(self, trainer: Any) -> None:
            if trainer.is_global_zero and not trainer.sanity_checking:
                report(trainer.global_step, {**dict(trainer.callback_metrics), "epoch": trainer.current_epoch})

    return AipCallback()


def transformers() -> Any:
    """Return a `TrainerCallback` for the `Trainer` of Hugging Face Transformers; names as the Trainer logs them."""
    base: Any = importlib.import_module("transformers").TrainerCallback

    class AipCallback(base):
        def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
            if state.is_world_process_zero:
                report(state.global_step, dict(logs or {}))

        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            if should_stop():
                control.should_save = control.should_training_stop = True

    return AipCallback()


def keras() -> Any:
    """Return a `keras.callbacks.Callback` for `model.fit`: metrics of each epoch, "val_loss" as "val/loss"."""
    base: Any = importlib.import_module("keras").callbacks.Callback

    class AipCallback(base):
        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            report(epoch + 1, {_split(name): value for name, value in (logs or {}).items()})

        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            if should_stop():
                self.model.stop_training = True

    return AipCallback()


def xgboost() -> Any:
    """Return a `TrainingCallback` for `xgboost.train` and its scikit-learn estimators: "validation/logloss" a round."""
    base: Any = importlib.import_module("xgboost").callback.TrainingCallback

    class AipCallback(base):
        def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
            newest = {
                f"{data}/{metric}": history[-1][0] if isinstance(history[-1], tuple) else history[-1]
                for data, metrics in evals_log.items()
                for metric, history in metrics.items()
            }
            report(epoch + 1, newest)
            return should_stop()

    return AipCallback()


def ultralytics(model: Any) -> Any:
    """Add callbacks to a model of Ultralytics (`YOLO("yolo11n.pt")`) and return it; names as in `results.csv`."""

    def epoch_ended(trainer: Any) -> None:
        losses = trainer.label_loss_items(trainer.tloss, prefix="train") if trainer.tloss is not None else {}
        report(trainer.epoch + 1, {**losses, **trainer.metrics, **{f"lr/{k}": v for k, v in trainer.lr.items()}})

    def batch_ended(trainer: Any) -> None:
        if should_stop():
            trainer.stop = True

    model.add_callback("on_fit_epoch_end", epoch_ended)
    model.add_callback("on_train_batch_end", batch_ended)
    return model


def _split(name: str) -> str:
    return f"val/{name[4:]}" if name.startswith("val_") else f"train/{name}"
