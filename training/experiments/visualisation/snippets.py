"""How a program comes by something to look at: a few lines for each way, shown where nothing is there yet."""

from __future__ import annotations

SNIPPETS: tuple[tuple[str, str], ...] = (
    (
        "PyTorch SummaryWriter",
        """\
from torch.utils.tensorboard import SummaryWriter

writer = SummaryWriter()            # ./runs, or any folder below $AIP_OUTPUT_DIR
writer.add_scalar("train/loss", loss, step)
writer.add_image("samples", image, step)
writer.add_histogram("layer1/weight", model.layer1.weight, step)
writer.add_graph(model, images)
""",
    ),
    (
        "aip",
        """\
import aip

aip.report(step, {"train/loss": loss})
aip.image("samples", picture, step)     # array, tensor, PIL image, or path
aip.figure("confusion", fig, step)      # of Matplotlib or Plotly
aip.histogram("weights", values, step)
aip.table("worst images", ["file", "loss"], rows, step)
aip.embedding("last layer", vectors, labels, step)
""",
    ),
    (
        "Lightning",
        """\
import os
from lightning.pytorch.loggers import CSVLogger  # or TensorBoardLogger

trainer = Trainer(logger=CSVLogger(os.environ["AIP_OUTPUT_DIR"]))
""",
    ),
    (
        "Ultralytics",
        """\
import os
from ultralytics import YOLO

YOLO("yolo11n.pt").train(data="data.yaml", project=os.environ["AIP_OUTPUT_DIR"])
""",
    ),
    (
        "HuggingFace Trainer",
        """\
import os
from transformers import TrainingArguments

args = TrainingArguments(output_dir=os.environ["AIP_OUTPUT_DIR"], report_to="tensorboard", logging_steps=10)
""",
    ),
)
