"""Scripts as people write them who never heard of the platform, and what they fill into the form for them.

A folder each; nothing in them imports, reads or writes anything of the platform.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Style:
    """One script: its folder, the fields of *New training*, and what proves that it did its work.

    Attributes:
        prints: a line of its own that must stand in its log.
        leaves: files that must be among its outputs.
        state: how its job ends.
        needs_index: it installs packages, so it needs a package index.
    """

    name: str
    request: dict[str, object]
    prints: str
    leaves: tuple[str, ...] = ()
    state: str = "succeeded"
    needs_index: bool = False
    code: Path = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "code", HERE / self.name)


#: Installs into the job's own folder: the platform's Python stays as it is.
KERAS = "python -m pip install -q --target deps keras\nPYTHONPATH=deps python train.py\n"

STYLES = (
    Style(
        "plain_torch",
        {"start_file": "train.py", "arguments": "--epochs 12 --lr 0.01 --save-dir runs/exp1", "output_path": "runs"},
        "Epoch [12/12] loss: ",
        ("exp1/results.csv", "exp1/best.pt", "exp1/last.pt"),
    ),
    Style(
        "ddp",
        {"start_file": "main.py", "processes": 2, "output_path": "checkpoints"},
        "[rank 0/2] epoch 7 train_loss=",
        ("checkpoint_7.pth",),
    ),
    Style(
        "hf_trainer",
        {"start_file": "run_classification.py", "output_path": "results"},
        "'step': 120}",
        ("checkpoint-120/trainer_state.json", "checkpoint-120/pytorch_model.bin"),
    ),
    Style(
        "lightning",
        {"start_file": "fit.py", "output_path": "lightning_logs"},
        "`Trainer.fit` stopped: `max_epochs=4` reached.",
        ("version_0/metrics.csv", "version_0/checkpoints/epoch=3-step=64.ckpt"),
    ),
    Style(
        "keras_digits",
        {"command": KERAS, "output_path": "saved"},
        "Test accuracy: 0.",
        ("training.log.csv", "weights.03.keras"),
        needs_index=True,
    ),
    Style(
        "scikit",
        {"start_file": "digits.py", "output_path": "models"},
        "Best parameters: {'svc__C': 10}",
        ("svm.joblib",),
    ),
    Style(
        "cpp",
        {"command": "make perceptron\n./perceptron 10", "output_path": "out"},
        "epoch 9 loss 0.0",
        ("loss.csv", "weights.txt"),
    ),
    Style("shell", {"command": "./run_all.sh", "output_path": "results"}, "best: lr_0.4", ("summary.tsv", "all.tgz")),
    Style(
        "broken", {"start_file": "train.py"}, "RuntimeError: mat1 and mat2 shapes cannot be multiplied", state="failed"
    ),
)
