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
from inference.kit.prediction.selftest import DRAWN, MOST_BYTES, PICTURES
from inference.registry.models import Model, ModelVersion
from inference.registry.selftest.models import SelfTest
from workers.core.models import Job
from workers.core.runs import RunDir

if TYPE_CHECKING:
    from inference.evaluation.models import Evaluation

MOST_READ = (DRAWN + PICTURES) * MOST_BYTES + (64 << 10)
MOST_SEED = 1000
JPEG = b"\xff\xd8\xff"
UNSOUND = (
    OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError, BadRequest, files.OutsideRoot,
)  # fmt: skip
WORDS = ("machine", "onnxruntime", "provider")


@dataclass(frozen=True)
class Carried:
    """What a package carries of them: names and bytes below its folder, and how many pictures of a dataset."""

    files: Mapping[str, bytes]
    samples: int
    pictures: int

    @property
    def sha256(self) -> str:
        """Of all of it; "" where there is nothing."""
        return hashlib.sha256(self.files[f"{FOLDER}/{FILE}"]).hexdigest() if self.files else ""


NOTHING = Carried({}, 0, 0)


def file_of(version: ModelVersion) -> Path:
    """Where the samples of a version lie: beside its folder, which jobs of others may read."""
    return version.model.folder / f"selftest-{version.pk}.json"


def keep_evaluated(evaluation: Evaluation) -> None:
    """Keep the samples that an evaluation left; may be called again."""
    version, attempt = evaluation.model_version, evaluation.published_attempt
    if version is not None and attempt:
        keep(
            version,
            RunDir.for_attempt(evaluation.job_id, attempt).outputs,
            leaving.FILE,
            data=evaluation.version,
            job=evaluation.job,
        )


def keep(version: ModelVersion, outputs: Path, name: str, *, data: DatasetVersion | None, job: Job) -> None:
    """Keep the samples in a file of a job, unless a newer job left some, or the job is of somebody who may only look.

    Args:
        data: the dataset version that the pictures are from.
    """
    if data is None or not ModelVersion.objects.editable_by(job.owner).filter(pk=version.pk).exists():
        return
    known = SelfTest.objects.filter(version=version).first()
    if known is not None and known.job_id is not None and known.job_id > job.pk:
        return
    try:
        with os.fdopen(files.open_beneath(outputs, name), "rb") as file:
            found = json.loads(file.read(MOST_READ))
        samples = _sound(found)
    except UNSOUND:
        return
    if not samples:
        return
    files.write_json(file_of(version), {"format": 1, "samples": samples})
    words = found.get("made_with") if isinstance(found.get("made_with"), dict) else {}
    values = {
        "job": job,
        "data": data,
        "data_label": str(data)[:80],
        "samples": len(samples),
        "pictures": sum("picture" in sample for sample in samples),
        "made_with": {name: words[name][:100] for name in WORDS if isinstance(words.get(name), str)},
        "made_at": now(),
    }
    if is_sound(values["made_with"]):
        SelfTest.objects.update_or_create(version=version, defaults=values)


def _sound(found: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Samples with the fields that are known; what is none is left out."""
    kept: list[dict[str, Any]] = []
    for given in found["samples"][: DRAWN + PICTURES]:
        sample: dict[str, Any] = {"asked": _asked(given["asked"]), "answer": given["answer"]}
        if not isinstance(given["answer"]["predictions"], list) or not is_sound(given["answer"]):
            continue
        if "picture" in given:
            try:
                data = base64.b64decode(given["picture"], validate=True)
            except binascii.Error:
                continue
            if not data.startswith(JPEG):
                continue
            sample["picture"] = given["picture"]
        elif isinstance(given.get("seed"), int) and 0 <= given["seed"] < MOST_SEED:
            sample["seed"] = given["seed"]
        else:
            continue
        if len(json.dumps(sample)) <= MOST_BYTES:
            kept.append(sample)
    return kept


def _asked(given: Mapping[str, Any]) -> dict[str, Any]:
    names = ("score_threshold", "max_detections", "top_k")
    asked = {name: given[name] for name in names if finite(given.get(name)) is not None}
    Requested.from_values(asked)  # within its bounds
    return asked


def kept(version: ModelVersion) -> SelfTest | None:
    """What is kept of a version; None where no job has made samples."""
    return SelfTest.objects.filter(version=version).first()


def of(version: ModelVersion, by: User | None) -> Carried:
    """What a package for a person carries.

    Pictures of a dataset go along only where the model's owner lets them, and the person may read that dataset.
    """
    row = kept(version)
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
        about = {"picture": name, "sha256": hashlib.sha256(data).hexdigest(), "from": row.data_label if own else ""}
        listed.append(about | {"asked": sample["asked"], "answer": sample["answer"]})
    content = {"format": 1, "tolerance": TOLERANCE, "made_with": row.made_with, "samples": listed}
    made[f"{FOLDER}/{FILE}"] = json.dumps(content, ensure_ascii=False, indent=1).encode() + b"\n"
    return Carried(made, len(listed), sum("picture" in sample for sample in samples))


def may_carry_pictures(model: Model, row: SelfTest, by: User | None) -> bool:
    """Whether pictures of the dataset go into a package for a person."""
    if by is None or not model.packages_pictures or row.data_id is None:
        return False
    return DatasetVersion.objects.usable_by(by).filter(pk=row.data_id).exists()
