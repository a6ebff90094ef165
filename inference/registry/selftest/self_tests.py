"""Keep the samples that an evaluation or a conversion left, and say which of them go into a package.

Programs that ran a model wrote them, so all of it is looked at again; the drawn pictures are drawn anew here.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.utils.timezone import now

from accounts.models import User
from aiplatform.lib import files
from aiplatform.lib.numbers import finite
from aiplatform.lib.parsers import is_sound
from datasets.models import DatasetVersion
from inference.kit.model_io.refusals import BadRequest
from inference.kit.model_io.requested import Requested
from inference.kit.models.selftest import FILE, FOLDER, TOLERANCE, drawn
from inference.kit.prediction import selftest as leaving
from inference.kit.prediction.selftest import DRAWN, MAX_BYTES, PICTURES
from inference.registry.models import Model, ModelVersion
from inference.registry.selftest.models import SelfTest
from workers.core.models import Job
from workers.core.runs import RunDir

if TYPE_CHECKING:
    from inference.evaluation.models import Evaluation

MAX_READ_BYTES = (DRAWN + PICTURES) * MAX_BYTES + (64 << 10)
MAX_SEED = 1000
JPEG = b"\xff\xd8\xff"
UNSOUND = (
    OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError, BadRequest, files.OutsideRoot,
)  # fmt: skip
ENVIRONMENT_FIELDS = ("machine", "onnxruntime", "provider")


@dataclass(frozen=True)
class PackagedSamples:
    """What a package carries of them: names and bytes below its folder, and how many pictures of a dataset."""

    files: Mapping[str, bytes]
    samples: int
    pictures: int

    @property
    def sha256(self) -> str:
        """Of all of it; "" where there is nothing."""
        return hashlib.sha256(self.files[f"{FOLDER}/{FILE}"]).hexdigest() if self.files else ""


NOTHING = PackagedSamples({}, 0, 0)


def file_of(version: ModelVersion) -> Path:
    """Return the path of the samples of a version: next to its folder, which jobs of others may read."""
    return version.model.folder / f"selftest-{version.pk}.json"


def keep_evaluated(evaluation: Evaluation) -> None:
    """Keep the samples that an evaluation left; may be called again."""
    version, attempt = evaluation.model_version, evaluation.published_attempt
    if version is not None and attempt:
        store(
            version,
            RunDir.for_attempt(evaluation.job_id, attempt).outputs,
            leaving.FILE,
            data=evaluation.version,
            job=evaluation.job,
        )


def store(version: ModelVersion, outputs: Path, name: str, *, data: DatasetVersion | None, job: Job) -> None:
    """Store the samples of a job, unless a newer job stored some, or the owner of the job may not edit the model.

    Args:
        data: the dataset version that the pictures are from.
    """
    if data is None or not ModelVersion.objects.editable_by(job.owner).filter(pk=version.pk).exists():
        return
    existing = SelfTest.objects.filter(version=version).first()
    if existing is not None and existing.job_id is not None and existing.job_id > job.pk:
        return
    try:
        with os.fdopen(files.open_beneath(outputs, name), "rb") as file:
            document = json.loads(file.read(MAX_READ_BYTES))
        samples = _valid_samples(document)
    except UNSOUND:
        return
    if not samples:
        return
    files.write_json(file_of(version), {"format": 1, "samples": samples})
    made_with = document.get("made_with") if isinstance(document.get("made_with"), dict) else {}
    values = {
        "job": job,
        "data": data,
        "data_label": str(data)[:80],
        "samples": len(samples),
        "pictures": sum("picture" in sample for sample in samples),
        "made_with": {
            name: made_with[name][:100] for name in ENVIRONMENT_FIELDS if isinstance(made_with.get(name), str)
        },
        "made_at": now(),
    }
    if is_sound(values["made_with"]):
        SelfTest.objects.update_or_create(version=version, defaults=values)


def _valid_samples(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return samples with the known fields; invalid ones are left out."""
    samples: list[dict[str, Any]] = []
    for entry in document["samples"][: DRAWN + PICTURES]:
        sample: dict[str, Any] = {"asked": _checked_options(entry["asked"]), "answer": entry["answer"]}
        if not isinstance(entry["answer"]["predictions"], list) or not is_sound(entry["answer"]):
            continue
        if "picture" in entry:
            try:
                data = base64.b64decode(entry["picture"], validate=True)
            except binascii.Error:
                continue
            if not data.startswith(JPEG):
                continue
            sample["picture"] = entry["picture"]
        elif isinstance(entry.get("seed"), int) and 0 <= entry["seed"] < MAX_SEED:
            sample["seed"] = entry["seed"]
        else:
            continue
        if len(json.dumps(sample)) <= MAX_BYTES:
            samples.append(sample)
    return samples


def _checked_options(values: Mapping[str, Any]) -> dict[str, Any]:
    names = ("score_threshold", "max_detections", "top_k")
    options = {name: values[name] for name in names if finite(values.get(name)) is not None}
    Requested.from_values(options)  # within its bounds
    return options


def for_version(version: ModelVersion) -> SelfTest | None:
    """Return the stored self-test of a version; None if no job has made samples."""
    return SelfTest.objects.filter(version=version).first()


def for_package(version: ModelVersion, by: User | None) -> PackagedSamples:
    """Return what a package for a user contains.

    Pictures of a dataset go along only where the model's owner lets them, and the user may read that dataset.
    """
    row = for_version(version)
    if row is None:
        return NOTHING
    try:
        samples = json.loads(file_of(version).read_bytes())["samples"]
    except (OSError, ValueError, LookupError):
        return NOTHING
    if not may_carry_pictures(version.model, row, by):
        samples = [sample for sample in samples if "picture" not in sample]
    if not samples:
        return NOTHING
    made: dict[str, bytes] = {}
    listed: list[dict[str, Any]] = []
    for number, sample in enumerate(samples, 1):
        own = "picture" in sample
        name = f"{number}.jpg" if own else f"{number}.png"
        data = base64.b64decode(sample["picture"]) if own else drawn(sample["seed"])
        made[f"{FOLDER}/{name}"] = data
        entry = {"picture": name, "sha256": hashlib.sha256(data).hexdigest(), "from": row.data_label if own else ""}
        listed.append(entry | {"asked": sample["asked"], "answer": sample["answer"]})
    content = {"format": 1, "tolerance": TOLERANCE, "made_with": row.made_with, "samples": listed}
    made[f"{FOLDER}/{FILE}"] = json.dumps(content, ensure_ascii=False, indent=1).encode() + b"\n"
    return PackagedSamples(made, len(listed), sum("picture" in sample for sample in samples))


def may_carry_pictures(model: Model, row: SelfTest, by: User | None) -> bool:
    """Whether pictures of the dataset go into a package for a user."""
    if by is None or not model.packages_pictures or row.data_id is None:
        return False
    return DatasetVersion.objects.usable_by(by).filter(pk=row.data_id).exists()
