"""Second half of an import: make the planned version. Files are moved, not copied."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from aiplatform.lib.files import atomic_writer, flush_folder, link_or_copy, open_beneath
from aiplatform.lib.wording import Message
from datasets.formats.writer import CocoHead, StoredImage
from datasets.models import DatasetVersion, Import
from datasets.services import class_names, problem_lists, resplitting, rewriting, sources, versions
from datasets.services.claims import ImportClaim


def commit(row: Import, claim: ImportClaim) -> None:
    """Make the version the plan describes; safe to run again after a crash at any point.

    Raises:
        ClaimLost: another worker took over.
    """
    rewrite = (rewriting.REWRITES.find(row.wanted) or resplitting.REWRITE) if row.source_version_id else None
    if rewrite and not (row.folder / "plan.json").exists():
        rewrite.write_plan(row)
    plan: dict[str, Any] = json.loads((row.folder / "plan.json").read_text())
    if row.version is None:
        before = row.source_version or row.dataset.newest
        story = rewrite.story(row) if rewrite else _story(row)
        note = "" if story else _note(row, before)
        row.version = versions.allocate(row.dataset, by=row.created_by, parent=before, note=note, story=story)
        try:
            claim.write(version=row.version)
        except BaseException:
            versions.discard(row.version)
            raise
    total = int(row.report["images"])
    version = row.version
    if not version.is_ready:
        claim.write(phase="moving", done=0, total=total)

        def place(target: Path) -> None:
            _place_images(row, plan, target, claim, total)

        versions.publish(
            version,
            lambda: (image for _source, image in _planned(row)),
            task=plan["task"],
            classes=class_names.of_plan(row, plan["classes"]),
            place_images=place,
            images_root=plan["images_root"],
            coco_head=_coco_head(plan),
            on_progress=lambda done: claim.progress("writing", done, total),
        )
    problems = row.folder / problem_lists.NAME
    if problems.exists():  # the report outlives the working folder
        shutil.copyfile(problems, version.path / problem_lists.NAME)
    claim.finish(state=Import.State.DONE, phase="", done=total, total=total)


def _coco_head(plan: dict[str, Any]) -> CocoHead:
    head = plan.get("coco_head") or {"info": {}, "licenses": [], "categories": []}  # a plan of before it was kept
    return CocoHead(head["info"], head["licenses"], dict(head["categories"]))


def _story(row: Import) -> Message:
    """What the source of its files says of them."""
    source = sources.for_upload(row.upload) if row.upload else None
    return source.story(row.upload.metadata) if row.upload and source and source.story else Message()


def _note(row: Import, before: DatasetVersion | None) -> str:
    """Describe what was imported and what changes against the version before."""
    source = row.upload.filename if row.upload else row.server_path
    if before is None:
        return source
    old = set(before.assets.values_list("path", "sha256").iterator(chunk_size=5000))
    new = {(image.path, image.sha256) for _source, image in _planned(row)}
    return f"{source}: +{len(new - old)} −{len(old - new)}"


def _planned(row: Import) -> Iterator[tuple[str, StoredImage]]:
    with (row.folder / "plan.jsonl").open(encoding="utf-8") as lines:
        for line in lines:
            entry = json.loads(line)
            yield entry.pop("source"), StoredImage(**entry)


def _place_images(row: Import, plan: dict[str, Any], target: Path, claim: ImportClaim, total: int) -> None:
    """Put the images below `target`: moved there, or reached by one link if the data stays in place."""
    if plan["images_root"]:
        if not target.is_symlink():
            target.symlink_to(plan["images_root"], target_is_directory=True)
        return
    root = Path(plan["root"])
    made: set[Path] = set()
    for done, (source, image) in enumerate(_planned(row)):
        path = target / image.path
        if path.parent not in made:
            path.parent.mkdir(parents=True, exist_ok=True)
            made.add(path.parent)
        try:
            if folder := next((copied for copied in plan.get("copied", ()) if source.startswith(f"{copied}/")), None):
                _copy(Path(folder), source.removeprefix(f"{folder}/"), path)
            elif plan.get("shared"):  # images of another version, which keeps them
                link_or_copy(root / source, path)
            else:
                (root / source).rename(path)
        except FileExistsError:
            pass  # linked by an earlier attempt
        except FileNotFoundError:
            if not path.exists():  # moved by an earlier attempt, or lost
                raise
        if done % 256 == 0:
            claim.progress("moving", done, total)
    for folder_made in made:
        flush_folder(folder_made)


def _copy(folder: Path, path: str, target: Path) -> None:
    """Copy a file from a folder that others may change: no link is followed."""
    with os.fdopen(open_beneath(folder, path), "rb") as file, atomic_writer(target) as out:
        shutil.copyfileobj(file, out)
