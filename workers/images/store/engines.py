"""Engines: a request for one becomes a folder, by a job that builds it; equal requests share it."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import stat
import sys
import sysconfig
from pathlib import Path
from typing import Any

from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from accounts.models import User
from accounts.services import audit
from aiplatform import env
from aiplatform.lib import wording
from aiplatform.lib.errors import Invalid, NameTaken, Refusals
from aiplatform.lib.titles import TITLE
from workers.core.models import Job, VirtualCluster
from workers.core.states import COMPLETED
from workers.images.models import Engine, Image, State, Visibility
from workers.images.store import catalog, compatibility
from workers.images.store import paths as places
from workers.jobs import resource_request, submission

KIND = "image_build"
MAX_LENGTH = 20_000
MAX_LINES = 500
CPUS = 1.0
#: Options that read files or addresses of the machine: a line of requirements names packages.
_OPTION = re.compile(r"^\s*(-|file:|\.{0,2}/)")
#: Name, extras, and versions or an address (PEP 508); what follows a semicolon is a marker that pip checks.
_PACKAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*\s*(?:\[[^\[\]]*\]\s*)?(?:@\s*\S+|(?P<versions>[=<>!~(].*))?\Z")
_VERSION = re.compile(r"\(?\s*(?:===?|!=|<=|>=|~=|<|>)\s*[A-Za-z0-9.*+!_-]+\s*\)?\Z")


def build(
    *, user: User, name: str, requirements: str, tag: str = "", description: str = "",
    visibility: str = Visibility.PRIVATE, with_platform: bool = True, cluster: VirtualCluster | None = None,
) -> Image:  # fmt: skip
    """Make an image out of a text of requirements, one package a line; a job builds it, unless it is there already.

    Args:
        with_platform: the platform's own packages are seen as well, after those that are asked for.
        cluster: where the job runs; None takes the person's current one.

    Raises:
        Invalid, NameTaken: see `check`.
        NotAMember, OverLimit, NeverFits: the job that builds it cannot be started.
    """
    check(user=user, name=name, tag=tag, requirements=requirements)
    engine = _engine(requirements, with_platform)
    try:
        with transaction.atomic():
            image = Image.objects.create(
                kind=Image.Kind.ENGINE, owner=user, name=name, tag=tag, description=description,
                visibility=visibility, engine=engine,
            )  # fmt: skip
            ensure(image, by=user, cluster=cluster)
            audit.record(user, "image_built", image)
    except IntegrityError:
        raise taken(name, tag) from None
    image.refresh_from_db()
    return image


def check(*, user: User, name: str = "x", tag: str = "", requirements: str = "pip") -> None:
    """Refuse at once what `build` refuses of a request.

    Raises:
        Invalid: a name or a line that is none.
        NameTaken: another image of this person has the name and the tag.
    """
    refusals = Refusals()
    with refusals:
        check_name(user=user, name=name, tag=tag)
    with refusals:
        _check_requirements(requirements)
    refusals.end()


def _check_requirements(text: str) -> None:
    lines = normalised(text)
    if len(text) > MAX_LENGTH or len(lines) > MAX_LINES or "\0" in text:
        raise Invalid(
            _("At most %(most)s lines and %(longest)s characters.") % {"most": MAX_LINES, "longest": MAX_LENGTH},
            field="requirements",
        )
    refusals = Refusals()
    for line in lines:
        with refusals:
            if _OPTION.match(line) or not _names_package(line):
                raise Invalid(
                    _(
                        "“%(line)s”: a line must name a package, such as torchmetrics==1.4; options and paths "
                        "are not supported."
                    )
                    % {"line": line[:80]},
                    field="requirements",
                )
    refusals.end()


def _names_package(line: str) -> bool:
    """Return whether a line is a package with or without versions, as far as that shows without pip."""
    match = _PACKAGE.match(line.partition(";")[0].partition(" #")[0].strip())
    versions = match["versions"] if match else None
    return bool(match) and all(_VERSION.match(each.strip()) for each in (versions or "").split(",") if versions)


def check_name(*, user: User, name: str = "x", tag: str = "") -> None:
    """Refuse invalid names, and those that another image of this user has."""
    refusals = Refusals()
    for field, text, room in (("name", name, 100), ("tag", tag, 50)):
        with refusals:
            if (text or field == "name") and (not TITLE.regex.match(text) or len(text) > room):  # type: ignore[union-attr]  # compiled by the validator
                raise Invalid(TITLE.message, field=field)
    with refusals:
        if Image.objects.filter(owner=user, name=name, tag=tag).exists():
            raise taken(name, tag)
    refusals.end()


def taken(name: str, tag: str) -> NameTaken:
    """Return the error for a user who has such an image already."""
    shown = f"{name}:{tag}" if tag else name
    return NameTaken(_("You already have an image named “%(name)s”. Use another name or tag.") % {"name": shown})


def ensure(image: Image, *, by: User, cluster: VirtualCluster | None = None) -> Job | None:
    """Have the engine of an image built where it is not; returns the job that builds it, None where it is ready.

    Raises:
        NotAMember, OverLimit, NeverFits: a job of this person cannot be started.
    """
    engine = current(image)
    if engine.state == State.READY and places.engine(engine.digest).is_dir():
        return None
    if engine.state == State.BUILDING and engine.job and not _in_vain(engine.job):
        return engine.job
    with transaction.atomic():
        before = Engine.objects.filter(pk=engine.pk, state=engine.state, job=engine.job_id)
        if not before.update(state=State.BUILDING, message=wording.Message()):  # somebody else asked just now
            engine.refresh_from_db()
            return engine.job
        job = submission.submit(
            owner=by, kind=KIND, name=f"{image}"[:100], spec={"engine": engine.pk, "image": str(image)},
            cluster=resource_request.cluster_for(by, cluster), gpus_per_node=0, cpus=CPUS,
        )  # fmt: skip
        Engine.objects.filter(pk=engine.pk).update(job=job)
    return job


def _in_vain(job: Job) -> bool:
    """Whether a build ended and no engine will come of it. What it made is taken over a moment after its end."""
    return job.is_final and (job.published or job.state not in COMPLETED)


def can_edit(image: Image) -> bool:
    """Return whether an image has packages that can be edited for another build."""
    return not image.built_in and image.kind == Image.Kind.ENGINE and bool(image.engine and image.engine.requirements)


def similar(image: Image) -> dict[str, Any]:
    """Return the values of a form for another build like `image`, with the next tag; {} if its packages are fixed."""
    if not can_edit(image) or image.engine is None:
        return {}
    return {
        "name": image.name,
        "tag": str(int(image.tag) + 1) if image.tag.isdecimal() else f"{image.tag}-2" if image.tag else "2",
        "requirements": image.engine.requirements,
        "with_platform": image.engine.with_platform,
        "description": image.description,
        "visibility": image.visibility,
    }


def current(image: Image) -> Engine:
    """The engine of an image. One of the platform's own is another once the platform has another Python."""
    if image.built_in:
        engine = _engine(catalog.BUILT_IN[image.built_in].requirements, with_platform=True)
        if image.engine_id != engine.pk:
            Image.objects.filter(pk=image.pk).update(engine=engine)
            image.engine = engine
    assert image.engine is not None
    return image.engine


def _engine(requirements: str, with_platform: bool) -> Engine:
    lines = normalised(requirements)
    base = {"python": sys.version, "machine": platform.machine(), "base": sys.base_prefix}
    folders = platform_folders() if with_platform else []
    text = json.dumps([lines, base, folders])
    digest = hashlib.sha256(text.encode()).hexdigest()
    engine, _made = Engine.objects.select_related("job").get_or_create(
        digest=digest,
        defaults={
            "requirements": "\n".join(lines), "with_platform": with_platform, "python": platform.python_version(),
        },
    )  # fmt: skip
    return engine


def normalised(requirements: str) -> list[str]:
    """The lines that name something, as they count for being the same."""
    lines = (line.strip() for line in requirements.splitlines())
    return sorted({line for line in lines if line and not line.startswith("#")})


def platform_folders() -> list[str]:
    """Where the platform's own packages lie."""
    paths = sysconfig.get_paths()
    return list(dict.fromkeys([paths["purelib"], paths["platlib"]]))


def plan(engine: Engine) -> dict[str, Any]:
    """Input of the builder."""
    return {
        "target": str(places.engine(engine.digest)),
        "base": str(Path(sys.base_prefix) / "bin" / f"python3.{sys.version_info.minor}"),
        "python": engine.python,
        "requirements": engine.requirements,
        "index": env.ENGINE_INDEX,
        "platform": platform_folders() if engine.with_platform else [],
    }


def seal(engine: Engine, job: Job, result: dict[str, Any]) -> None:
    """Make a built folder the platform's own, readable and unchangeable for all jobs, and the engine ready.

    Only what this job was to build: a folder that another job builds, or that is ready, stays as it is.
    """
    if not Engine.objects.filter(pk=engine.pk, job=job, state=State.BUILDING).exists():
        return
    folder = places.engine(engine.digest)
    size = _take_over(folder)
    facts = {name: str(result[name])[:40] for name in ("python", "torch", "cuda", "machine") if result.get(name)}
    if isinstance(result.get("packages"), int):
        facts["packages"] = result["packages"]
    rows = Engine.objects.filter(pk=engine.pk, job=job, state=State.BUILDING)
    if rows.update(state=State.READY, facts=facts, size_bytes=size, message=wording.Message()):
        engine.refresh_from_db()
        compatibility.note(engine)


def failed(engine: Engine, job: Job, message: wording.Message) -> None:
    """Note why an engine could not be built, and remove what there is of it."""
    if Engine.objects.filter(pk=engine.pk, job=job, state=State.BUILDING).update(state=State.FAILED, message=message):
        places.remove(places.engine(engine.digest))


def _take_over(folder: Path) -> int:
    """Give the platform what a job's user built; no link is followed. Returns the bytes."""
    size, uid, gid = 0, os.geteuid(), os.getegid()
    for _path, _names, names, at in os.fwalk(folder):
        os.fchown(at, uid, gid)
        os.fchmod(at, 0o755)
        for name in names:
            info = os.stat(name, dir_fd=at, follow_symlinks=False)
            os.chown(name, uid, gid, dir_fd=at, follow_symlinks=False)
            if stat.S_ISREG(info.st_mode):
                os.chmod(name, 0o755 if info.st_mode & 0o111 else 0o644, dir_fd=at)
                size += info.st_size
    return size


def forget_unused() -> None:
    """Delete engines that no image and no box names any more."""
    for engine in Engine.objects.filter(images=None, uses=None).exclude(state=State.BUILDING)[:20]:
        if Engine.objects.filter(pk=engine.pk, images=None, uses=None).delete()[0]:
            places.remove(places.engine(engine.digest))


def settle() -> None:
    """End builds whose job was deleted before it reported its end."""
    for engine in Engine.objects.filter(state=State.BUILDING, job=None)[:20]:
        Engine.objects.filter(pk=engine.pk, job=None).update(state=State.NEW)
