"""Models in the registry, made of tiny ONNX files."""

from __future__ import annotations

from pathlib import Path

from accounts.models import User
from inference.delivery.push import pushes
from inference.delivery.push.models import Push, PushTarget
from inference.registry import registration as registry
from inference.registry.models import Model, ModelVersion, Visibility
from tests.inference import tiny
from workers.core.models import Job, VirtualCluster


def model_version(
    owner: User,
    tmp_path: Path,
    *,
    name: str = "cells",
    task: str = "detection",
    visibility: str = Visibility.PRIVATE,
    model: Model | None = None,
) -> ModelVersion:
    """A version of a tiny model with its files in place."""
    folder = tmp_path / f"{name}-{task}"
    {
        "detection": tiny.detector,
        "classification": tiny.classifier,
        "segmentation": tiny.segmenter,
        "keypoints": tiny.pointer,
        "embedding": tiny.embedder,
        "instances": tiny.instancer,
        "tagging": tiny.tagger,
        "tensor": tiny.identity,
    }[task](folder)
    archive = zipped(folder, tmp_path / f"{name}-{task}.zip")
    return registry.register_upload(
        user=owner, archive=archive, filename=archive.name, name=name, visibility=visibility, model=model
    )


def push(owner: User, version: ModelVersion) -> Push:
    """The first push of somebody, just asked for, to a place where nothing is asked: nobody allowed it."""
    made = Push.objects.filter(owner=owner).first()
    if made is not None:
        return made
    inside = "http://127.0.0.1:9/models"
    target = PushTarget.objects.create(owner=owner, name="Shelf", kind="put", address=inside)
    return pushes.submit(user=owner, version=version, target=target)


def zipped(folder: Path, target: Path) -> Path:
    """A zip of a folder's files."""
    import shutil

    return Path(shutil.make_archive(str(target.with_suffix("")), "zip", folder))


def training_job(owner: User, **fields: object) -> Job:
    """A row of a training that runs nowhere."""
    cluster = VirtualCluster.objects.get(name="default")
    return Job.objects.create(owner=owner, cluster=cluster, **{"kind": "training", "name": "cells", **fields})
