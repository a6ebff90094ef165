"""Environments of a chaos run: what dwellers need before it, and what database and files say of them after it."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import zstandard

from tests.chaos.lodging_checker import Lodging, Saved

STUB = Path(__file__).parents[1] / "fakes" / "jupyter.py"
NAME = "lodging_"


def prepared(many: int, cluster: Any) -> list[dict[str, Any]]:
    """People with a key for SSH, and an image of theirs that brings the stand-in for JupyterLab."""
    import asyncssh
    from django.db import transaction

    from accounts.services import ssh_keys, tokens
    from tests.factories import people as cast
    from workers.images.models import Engine, Image, State
    from workers.images.store import engines
    from workers.images.store import paths as places

    found = []
    with transaction.atomic():  # a sweep removes engines that no image has
        row = engines._engine("stand-in", with_platform=True)
        for number in range(many):
            user = cast.user(f"dweller{number}", cluster=cluster)
            image = Image.objects.create(kind=Image.Kind.ENGINE, name=f"lab{number}", owner=user, engine_id=row.pk)
            key = asyncssh.generate_private_key("ssh-ed25519")
            ssh_keys.add(user=user, name="chaos", line=key.export_public_key().decode().strip())
            found.append({
                "name": user.username, "token": tokens.issue(user=user, name="chaos")[1], "image": image.pk,
                "ssh_key": key.export_private_key().decode(),
            })  # fmt: skip
    folder = places.engine(row.digest)
    places.open_folder(folder.parent)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    program = folder / "bin" / "jupyter-lab"
    program.write_text(STUB.read_text().replace("#!/usr/bin/env python3", f"#!{folder}/bin/python -I", 1))
    for path in (folder, program):
        path.chmod(0o755)
    Engine.objects.filter(pk=row.pk).update(state=State.READY, facts={"python": "3.11"}, size_bytes=1)
    return found


def lodgings(struck: Mapping[int, set[int]], closed: Mapping[int, set[int]]) -> list[Lodging]:
    """Every environment; attempts of which a process was killed, and of them whose exec server was, by job."""
    from training.environments.models import Environment
    from workers.access.ssh.models import SshSession
    from workers.core.runs import RunDir

    found = []
    for row in Environment.objects.select_related("job").prefetch_related("job__attempts"):
        attempts = list(row.job.attempts.all())
        found.append(
            Lodging(
                row.pk, row.job.name, row.job.state,
                {one.number: _labs(RunDir.for_attempt(row.pk, one.number).outputs) for one in attempts},
                frozenset(struck.get(row.pk, ())), frozenset(closed.get(row.pk, ())),
                [one.number for one in attempts if one.ended_at is None],
                row.attempt if row.ready_at else 0,
                SshSession.objects.filter(job=row.pk, ended_at=None).count(),
                {one.number: one.ended_at.timestamp() for one in attempts if one.ended_at},
            )
        )  # fmt: skip
    return found


def _labs(outputs: Path) -> list[str]:
    return sorted(path.name.removeprefix("lab-") for path in outputs.glob("lab-*"))


def saved() -> list[Saved]:
    """Every saved image, its file read again."""
    from workers.images.models import Image
    from workers.images.store import paths as places

    found = []
    for row in Image.objects.filter(kind=Image.Kind.SAVED):
        whole, notes = _read(places.packed(row.pk), row.sha256) if row.state == "ready" else (True, set())
        found.append(Saved(row.pk, row.job_id or 0, row.state, str(row.message), whole, frozenset(notes)))
    return found


def _read(path: Path, sha256: str) -> tuple[bool, set[str]]:
    """Whether a packed layer is what its row says and its notes are whole, and their names."""
    if not path.is_file() or hashlib.sha256(path.read_bytes()).hexdigest() != sha256:
        return False, set()
    notes, whole = set(), True
    with (
        path.open("rb") as file,
        zstandard.ZstdDecompressor().stream_reader(file) as plain,
        tarfile.open(fileobj=plain, mode="r|") as archive,
    ):
        for member in archive:
            name = os.path.basename(member.name)
            if member.isfile() and "notes/" in member.name and not name.startswith("."):
                content = archive.extractfile(member)
                notes.add(name)
                whole &= content is not None and hashlib.sha256(content.read()).hexdigest() == name
    return whole, notes


def unfinished(root: Path) -> list[str]:
    """Files that savers had begun and nobody removed."""
    return [str(path) for path in (root / "images").glob(".*.tar.zst.*")]
