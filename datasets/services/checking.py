"""First half of an import: unpack, read, check every image, and write the plan of a version.

What is done is on disk (`files/`, `checked.jsonl`), so the next worker goes on where a killed one stopped.
"""

from __future__ import annotations

import json
from fractions import Fraction
from itertools import combinations
from typing import Any

from django.utils.translation import gettext as _

from aiplatform import env
from aiplatform.lib.wording import Message, message
from datasets.formats import detect, file_kinds, leaks, scaling
from datasets.formats.listing import Listing
from datasets.formats.neutral import SPLITS, ImageItem, Parsed
from datasets.formats.size_checks import fit_to_image
from datasets.models import Import
from datasets.services import inspecting, plans, problem_lists, resplitting, server_paths, unpacking
from datasets.services.claims import ImportClaim
from datasets.services.import_options import Options
from datasets.services.unpacking import CannotRead
from datasets.storage import image_files

SHOWN_PROBLEMS = 100
MAX_PATH = 480
SKIPPED_IMAGES = ("bad_image", "bad_name", "image_without_class")


def check(row: Import, claim: ImportClaim) -> None:
    """Take a waiting import to its report.

    Raises:
        ClaimLost: cancelled or taken over.
        DomainError: the source as a whole cannot be used; says why.
    """
    root, unpacked = unpacking.files(row, claim)
    claim.write(phase="reading", done=0, total=0)
    options = Options.from_json(row.options)
    listing = Listing.scan(root, max_files=env.MAX_ARCHIVE_FILES, mask_folders=options.mask_folders)
    listing.encoding = options.encoding
    listing.tick = lambda: claim.progress("reading", 0, 0)
    if row.server_path and row.created_by:
        below = listing.root.relative_to(root)
        server_paths.require_files(root, (str(below / name) for name in listing.files), by=row.created_by)
    format_name = detect.detect(listing)
    if not format_name:
        raise CannotRead(_nothing_in(listing))
    is_requested = row.wanted in detect.FORMATS
    chosen = row.wanted if is_requested else format_name if row.annotated or row.wanted else "images"
    images_only = row.wanted == "images" or not (row.wanted or row.annotated)
    parsed = detect.read(listing, chosen, images_only=images_only)
    for archive in unpacked.pop("refused_inside", []):
        parsed.problems.add(archive["path"], "archive_refused", Message.from_json(archive["message"]))
    if row.annotated and (format_name == "images" or (row.wanted and row.wanted != format_name)):
        parsed.problems.add("", "no_annotations", message("report.no_annotations"), fatal=True)
    files = detect.files_of(listing, parsed)
    results = _checked(row, listing, [item.source for item in parsed.images], claim)
    factor = _scale(parsed, results, options)
    items = _select_images(parsed, results)
    if not items and not parsed.problems.fatal:
        parsed.problems.add("", "no_images", message("report.no_images"), fatal=True)
    if row.split:
        resplitting.split_new(items, results, row.split)
    leaked = _leaks(parsed, results)
    size = plans.write(row, listing, parsed, results)
    problem_lists.write(row.folder, parsed.problems)
    report = _report(parsed, format_name=format_name, size_bytes=size) | {"files": files, "leaks": leaked} | unpacked
    report["unlabelled"] = not images_only and detect.is_unlabelled(parsed)
    report["wrapper"] = str(listing.root.relative_to(root))
    pairs = listing.unsure_masks | listing.detected_masks
    report["unsure_masks"] = {folder: list(pair) for folder, pair in pairs.items()}
    report["scale"] = str(factor) if factor else ""
    open_questions = {"mask_folders": bool(listing.unsure_masks), "sizes": bool(factor) and not options.sizes}
    report["undecided"] = [name for name, is_open in open_questions.items() if is_open]
    claim.finish(state=Import.State.REPORTED, format=chosen, report=report, phase="", tries=0)


def _nothing_in(listing: Listing) -> str:
    """What to do with data without an image that is taken."""
    sorts = {detect.sort_of(listing, name) for name in listing.files[:1000]}
    if "video" in sorts:
        return _("No images found, only a video. Extract single frames as images and upload those.")
    if "heic_photo" in sorts or "raw_photo" in sorts:
        return _("No supported images found, only photos in another format. Save them as JPEG first.")
    if "archive_inside" in sorts:
        return _("No images found, only an archive that could not be opened. Unpack it and upload its content.")
    return _("No images found. Supported formats: JPEG, PNG, WebP, BMP, GIF and TIFF.")


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
    stills = None if row.server_path else row.folder / "stills"
    with path.open("a", encoding="utf-8") as out:
        out.write("\n")  # ends such a line
        for source, entry in inspecting.inspect_all(listing.root, waiting, stills=stills):
            results[source] = entry
            out.write(json.dumps({"source": source} | entry) + "\n")
            claim.progress("checking", len(results), total)
    return results


def _scale(parsed: Parsed, results: dict[str, dict[str, Any]], options: Options) -> Fraction | None:
    """Scale all shapes where a user chose it; the factor by which they may be, None where there is none for all."""
    entries = [(item, results[item.source]) for item in parsed.images if "error" not in results[item.source]]
    factor = scaling.common_factor((item, entry["width"], entry["height"]) for item, entry in entries)
    if options.sizes == scaling.SCALE:
        if factor is None:
            parsed.problems.add("", "not_scaled", message("report.not_scaled"))
        else:
            for item, _entry in entries:
                scaling.scale(item, factor)
            parsed.problems.note("", "scaled", message("report.scaled", factor=str(factor)))
    return factor


def _select_images(parsed: Parsed, results: dict[str, dict[str, Any]]) -> list[ImageItem]:
    """Leave out broken images, report what is odd about the others, and fit their shapes."""
    problems = parsed.problems
    taken: set[str] = set()
    named = {item.path for item in parsed.images}
    selected = []
    for item in parsed.images:
        entry = results[item.source]
        if "error" in entry:
            problems.add(item.source, "bad_image", Message.from_json(entry["error"]))
            _count_lost(item, parsed)
            continue
        if entry.get("still"):
            item.path = plans.still_path(item.path, named | taken)
            if entry["kind"] in image_files.STILL_KINDS:
                text = message("report.stored_as_png", kind=entry["kind"], path=item.path)
                problems.note(item.source, "stored_as_png", text)
        if not _is_storable(item.path) or item.path in taken:
            problems.add(ascii(item.source), "bad_name", message("report.bad_name"))
            _count_lost(item, parsed)
            continue
        taken.add(item.path)
        if entry.get("moving"):
            problems.add(item.path, "first_frame", message("report.first_frame"))
        fit_to_image(item, entry["width"], entry["height"], problems, exif=entry.get("orientation", 1))
        selected.append(item)
    parsed.images = selected
    return selected


def _count_lost(item: ImageItem, parsed: Parsed) -> None:
    """Shapes go with an image that cannot be used, and are counted."""
    if item.shapes:
        parsed.problems.skip(item.source, "lost_shapes", message("report.image_lost"), count=len(item.shapes))


def _leaks(parsed: Parsed, results: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """Report duplicate images, and count images for scoring that are also in training data."""
    contents: dict[str, dict[str, list[str]]] = {}  # hash → split → paths
    for item in parsed.images:
        splits = contents.setdefault(results[item.source]["sha256"], {})
        splits.setdefault(item.split, []).append(item.path)
    for splits in contents.values():
        for first, *others in splits.values():
            for path in others:
                parsed.problems.add(path, "same_content", message("report.same_content", other=first))
        named = [split for split in SPLITS if split in splits]
        for learned, scored in combinations(named, 2):
            text = message("report.leak", split=learned, other=splits[learned][0])
            parsed.problems.add(splits[scored][0], "leak", text)
        if "" in splits and named:
            text = message("report.same_content", other=splits[named[0]][0])
            parsed.problems.add(splits[""][0], "same_content", text)
    return leaks.between({split: len(paths) for split, paths in splits.items()} for splits in contents.values())


def _is_storable(path: str) -> bool:
    try:
        return len(path.encode()) <= MAX_PATH and path.isprintable()
    except UnicodeEncodeError:
        return False


def _report(parsed: Parsed, *, format_name: str, size_bytes: int) -> dict[str, Any]:
    return {
        "format": parsed.format,
        "found": format_name,
        "task": parsed.task,
        "size_bytes": size_bytes,
        **parsed.counts(),
        "skipped_objects": parsed.problems.skipped,
        "skipped_images": sum(parsed.problems.counts[code] for code in SKIPPED_IMAGES),
        "unused_label_files": sum(parsed.problems.counts[code] for code in file_kinds.LABELS),
        "problem_counts": dict(parsed.problems.counts.most_common()),
        "problem_total": len(parsed.problems),
        "fatal": parsed.problems.fatal,
        "groups": [group.as_dict() for group in parsed.problems.groups()],
        "problems": [problem.as_dict() for problem in parsed.problems.first(SHOWN_PROBLEMS)],
    }
