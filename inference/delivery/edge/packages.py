"""Packages of versions as devices fetch them: made once, kept while a group runs them."""

from __future__ import annotations

import contextlib
import hashlib
import secrets
from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path

from django.db.models import ProtectedError
from django.utils.timezone import now

from accounts.models import User
from aiplatform.lib import disk, files, zips
from aiplatform.lib.errors import DomainError, Invalid
from inference.delivery.edge import keys
from inference.delivery.edge.models import EdgeGroup, EdgePackage
from inference.registry import packages
from inference.registry.models import ModelVersion
from inference.registry.selftest import self_tests

PACKAGE_RETENTION = timedelta(days=1)  # after creation, once no group uses them


class CannotRelease(DomainError, code="cannot_release", field="version"):
    """This version cannot go to devices."""


def for_version(version: ModelVersion, *, by: User) -> EdgePackage:
    """Return the package of a version that a user may export, created where it is missing."""
    self_test = self_tests.for_package(version, by)
    existing = EdgePackage.objects.filter(version=version, self_test=self_test.sha256).first()
    if existing is not None and package_file(existing.sha256).exists():
        return existing
    try:
        entries = packages.entries(version, by=by)
    except Invalid as exc:
        raise CannotRelease(exc.message) from None
    root = keys.folder() / "packages"
    root.mkdir(exist_ok=True)
    temporary = root / f".{secrets.token_hex(8)}"
    total, digest = 0, hashlib.sha256()
    if version.size_bytes > files.free_bytes(root):
        raise disk.DiskFull
    try:
        with temporary.open("wb") as out:
            for block in zips.blocks(entries):
                out.write(block)
                digest.update(block)
                total += len(block)
        temporary.rename(root / f"{digest.hexdigest()}.zip")
        files.flush_folder(root)
    finally:
        temporary.unlink(missing_ok=True)
    fields = {"version": version, "model_label": str(version)[:130], "size_bytes": total}
    created, _new = EdgePackage.objects.get_or_create(
        sha256=digest.hexdigest(), defaults=fields | {"self_test": self_test.sha256}
    )
    return created


def labels(digests: Iterable[str]) -> dict[str, str]:
    """The versions of packages by their sha256, of those that are known."""
    return dict(EdgePackage.objects.filter(sha256__in=set(digests)).values_list("sha256", "model_label"))


def package_file(sha256: str) -> Path:
    """Where the bytes of a package lie."""
    return keys.folder() / "packages" / f"{sha256}.zip"


def tidy() -> None:
    """Remove packages that no group runs and that were made more than a day ago."""
    held = EdgeGroup.objects.values_list("wanted", "before")
    there = {number for pair in held for number in pair if number is not None}
    for package in EdgePackage.objects.exclude(pk__in=there).filter(created_at__lt=now() - PACKAGE_RETENTION):
        with contextlib.suppress(ProtectedError):  # released again meanwhile
            package.delete()
            package_file(package.sha256).unlink(missing_ok=True)
