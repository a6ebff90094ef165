"""First half of an import: unpack, read, check every image, and write the plan of a version.

What is done is on disk (`files/`, `checked.jsonl`), so the next worker goes on where a killed one stopped.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

from django.utils.translation import gettext as _

from aiplatform import env
from aiplatform.lib import disk, tables
from aiplatform.lib.archives import Limits, extract
from aiplatform.lib.errors import DomainError
from aiplatform.lib.files import remove_tree, sha256_of, write_json, written_whole
from datasets.formats import detect
from datasets.formats.listing import Listing
from datasets.formats.neutral import ImageItem, Parsed
from datasets.formats.writer import StoredImage
from datasets.models import Import, Upload
from datasets.services import inspecting, server_paths, uploads
from datasets.services.claims import ImportClaim

SHOWN_PROBLEMS = 100
MAX_PATH = 480


class CannotRead(DomainError):
    code: ClassVar[str] = "cannot_read"
    status: ClassVar[int] = 400


def check(row: Import, claim: ImportClaim) -> None:
    """Take a waiting import to its report.

    Raises:
        ClaimLost: cancelled or taken over.
        DomainError: the source as a whole cannot be used; says why.
    """
    root, unpacked = _files(row, claim)
    claim.write(phase="reading", done=0, total=0)
    listing = Listing.of(root, max_files=env.MAX_ARCHIVE_FILES)
    if row.server_path and row.created_by:
        below = listing.root.relative_to(root)
        server_paths.require_files(root, (str(below / name) for name in listing.files), by=row.created_by)
    format_name = detect.detect(listing)
    if not format_name:
        raise CannotRead(_("There is no image in it. JPEG, PNG, WebP and BMP images are taken."))
    chosen = row.wanted if row.wanted in detect.READERS else format_name if row.annotated or row.wanted else "images"
    parsed = detect.read(listing, chosen)
    if row.annotated and (format_name == "images" or (row.wanted and row.wanted != format_name)):
        parsed.problems.add(
            "",
            "no_annotations",
            _("No such annotations were found. COCO, Pascal VOC and one folder per class are understood."),
            fatal=True,
        )
    results = _checked(row, listing, [item.source for item in parsed.images], claim)
    kept = _keep(parsed, results)
    if not kept and not parsed.problems.fatal:
        parsed.problems.add("", "no_images", _("No image of it can be used."), fatal=True)
    size = _write_plan(row, listing, parsed, results)
    _write_problems(row, parsed)
    report = _report(parsed, format_name=format_name, size_bytes=size) | unpacked
    claim.finish(state=Import.State.REPORTED, format=chosen, report=report, phase="", tries=0)


def _files(row: Import, claim: ImportClaim) -> tuple[Path, dict[str, Any]]:
    """Return the folder to read, and what unpacking changed in it."""
    if row.server_path:
        assert row.created_by is not None
        row.folder.mkdir(parents=True, exist_ok=True)
        return server_paths.require(row.server_path.rstrip("/") + "/", by=row.created_by), {}
    files, note = row.folder / "files", row.folder / "unpacked.json"
    if not files.exists():
        upload = row.upload
        if upload is None or not upload.file.exists():
            raise CannotRead(_("The uploaded file is gone. Upload it again."))
        _unpack(row, upload, files, note, claim)
    return files, json.loads(note.read_text())


def _unpack(row: Import, upload: Upload, files: Path, note: Path, claim: ImportClaim) -> None:
    row.folder.mkdir(parents=True, exist_ok=True)
    claim.write(phase="unpacking", done=0, total=0)
    if upload.sha256 and sha256_of(upload.file) != upload.sha256:
        raise CannotRead(_("The file that arrived is not the file that was announced: its sha256 differs."))
    uploads.require_room(owner=upload.owner, size_bytes=0)
    partial = files.with_name("files.partial")
    remove_tree(partial)
    limits = Limits(max_bytes=env.MAX_UNPACKED_BYTES, max_files=env.MAX_ARCHIVE_FILES)
    try:
        report = extract(
            upload.file, partial, limits=limits, on_progress=lambda count, _size: claim.progress("unpacking", count, 0)
        )
    except OSError as exc:
        remove_tree(partial)
        if disk.is_full(exc):
            raise disk.DiskFull from exc
        raise CannotRead(_("It could not be unpacked: %(why)s.") % {"why": exc.strerror}) from exc
    write_json(note, {"renamed": report.renamed[:100], "renamed_total": len(report.renamed), "ignored": report.ignored})
    partial.rename(files)
    upload.file.unlink(missing_ok=True)  # its content is in files/ now


def _checked(row: Import, listing: Listing, sources: list[str], claim: ImportClaim) -> dict[str, dict[str, Any]]:
    """Return source → result of checking the image; lines of an interrupted attempt are reused."""
    path = row.folder / "checked.jsonl"
    results: dict[str, dict[str, Any]] = {}
    if path.exists():
        for line in path.read_text("utf-8", "replace").splitlines():
            try:
                entry = json.loads(line)
            except ValueError:
                continue  # the line a killed worker was writing
            results[entry.pop("source")] = entry
    waiting = [source for source in sources if source not in results]
    total = len(sources)
    with path.open("a", encoding="utf-8") as out:
        out.write("\n")  # ends such a line
        for source, entry in inspecting.inspect_all(listing.root, waiting):
            results[source] = entry
            out.write(json.dumps({"source": source} | entry) + "\n")
            claim.progress("checking", len(results), total)
    return results


def _keep(parsed: Parsed, results: dict[str, dict[str, Any]]) -> list[ImageItem]:
    """Leave out broken images, report what is odd about the others, and fit their shapes."""
    problems = parsed.problems
    by_content: dict[str, str] = {}
    taken: set[str] = set()
    kept = []
    for item in parsed.images:
        entry = results[item.source]
        if "error" in entry:
            problems.add(item.source, "bad_image", entry["error"])
            continue
        if not _is_storable(item.path) or item.path in taken:
            problems.add(ascii(item.source), "bad_name", "The name is too long, no valid text, or taken.")
            continue
        taken.add(item.path)
        twin = by_content.setdefault(entry["sha256"], item.path)
        if twin != item.path:
            problems.add(item.path, "same_content", f"The image is the same as {twin}.")
        if entry["rotated"] and item.shapes:
            problems.add(
                item.path, "rotated", "The image is stored rotated; its shapes are read as lying on the upright image."
            )
        detect.fit_to_image(item, entry["width"], entry["height"], problems)
        kept.append(item)
    parsed.images = kept
    return kept


def _is_storable(path: str) -> bool:
    try:
        return len(path.encode()) <= MAX_PATH and path.isprintable()
    except UnicodeEncodeError:
        return False


def _write_plan(row: Import, listing: Listing, parsed: Parsed, results: dict[str, dict[str, Any]]) -> int:
    """Write plan.json and plan.jsonl for the second half. Returns the bytes of all images."""
    size = 0
    images_root = ""
    if row.server_path:
        parsed_sources = [item.source for item in parsed.images]
        shared = parsed_sources[0].removesuffix(parsed.images[0].path) if parsed_sources else ""
        if any(item.source != shared + item.path for item in parsed.images):  # a COCO file's own names
            shared = ""
            for item in parsed.images:
                item.path = item.source
        images_root = str(listing.root / shared)
    with written_whole(row.folder / "plan.jsonl", "w") as out:
        for source, image in _stored(parsed, results):
            size += image.size_bytes
            out.write(json.dumps({"source": source} | image.as_dict(), ensure_ascii=False) + "\n")
    write_json(
        row.folder / "plan.json",
        {
            "root": str(listing.root),
            "images_root": images_root,
            "task": parsed.task,
            "classes": [info.as_dict() for info in parsed.classes],
        },
    )
    return size


def _stored(parsed: Parsed, results: dict[str, dict[str, Any]]) -> Iterator[tuple[str, StoredImage]]:
    free = max((item.id or 0 for item in parsed.images), default=0)
    shape_id = max((shape.id or 0 for shape in parsed.shapes()), default=0)
    for item in parsed.images:
        if item.id is None:
            free += 1
        shapes = []
        for shape in item.shapes:
            if shape.id is None:
                shape_id += 1
                shape.id = shape_id
            shapes.append(shape.as_dict())
        entry = results[item.source]
        yield (
            item.source,
            StoredImage(
                path=item.path,
                sha256=entry["sha256"],
                width=entry["width"],
                height=entry["height"],
                size_bytes=entry["size_bytes"],
                id=item.id if item.id is not None else free,
                split=item.split,
                label=item.label,
                shapes=shapes,
            ),
        )


def _write_problems(row: Import, parsed: Parsed) -> None:
    with written_whole(row.folder / "problems.csv", "w") as out:
        tables.write_csv(
            out,
            ["path", "code", "stops the import", "message"],
            (
                (problem.path, problem.code, "yes" if problem.fatal else "", problem.message)
                for problem in parsed.problems.first(len(parsed.problems.listed))
            ),
        )


def _report(parsed: Parsed, *, format_name: str, size_bytes: int) -> dict[str, Any]:
    return {
        "format": parsed.format,
        "found": format_name,
        "task": parsed.task,
        "size_bytes": size_bytes,
        **parsed.counts(),
        "problem_counts": dict(parsed.problems.counts.most_common()),
        "problem_total": len(parsed.problems),
        "fatal": parsed.problems.fatal,
        "problems": [problem.as_dict() for problem in parsed.problems.first(SHOWN_PROBLEMS)],
    }
