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

PACKAGE_RETENTION = timedelta(days=1)  # since they were made, after nobody wants them


class CannotRelease(DomainError, code="cannot_release", field="version"):
    """This version cannot go to devices."""


def of(version: ModelVersion, *, by: User) -> EdgePackage:
    """The package of a version as a person may give it away, made where it is not there yet."""
    carried = self_tests.for_package(version, by)
    known = EdgePackage.objects.filter(version=version, self_test=carried.sha256).first()
    if known is not None and package_file(known.sha256).exists():
        return known
    try:
        entries = packages.entries(version, by=by)
    except Invalid as exc:
        raise CannotRelease(exc.message) from None
    root = keys.folder() / "packages"
    root.mkdir(exist_ok=True)
    making = root / f".{secrets.token_hex(8)}"
    total, found = 0, hashlib.sha256()
    if version.size_bytes > files.free_bytes(root):
        raise disk.DiskFull
    try:
        with making.open("wb") as out:
            for block in zips.blocks(entries):
                out.write(block)
                found.update(block)
                total += len(block)
        making.rename(root / f"{found.hexdigest()}.zip")
        files.flush_folder(root)
    finally:
        making.unlink(missing_ok=True)
    fields = {"version": version, "model_label": str(version)[:130], "size_bytes": total}
    made, _new = EdgePackage.objects.get_or_create(
        sha256=found.hexdigest(), defaults=fields | {"self_test": carried.sha256}
    )
    return made


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
