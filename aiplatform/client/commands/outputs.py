"""Outputs of a job: their columns, and their download into a folder."""

from __future__ import annotations

import shlex
import zipfile
from pathlib import Path

from aiplatform.client import download
from aiplatform.client.errors import ClientError
from aiplatform.client.http import Client
from aiplatform.client.output import columns

COLUMNS = columns("path, size=size_bytes|size, changed=changed_at|ago")


def folder_of(job: int) -> Path:
    """Default folder for the outputs of a job."""
    return Path("aip-outputs") / str(job)


def bring_back(client: Client, job: int, folder: Path, *, quiet: bool = False) -> str:
    """Fetch all outputs into a folder and return a sentence of it; a download that is cut goes on the next time.

    Raises:
        ClientError: refused, cut, or the folder cannot be written.
    """
    if not client.get(f"jobs/{job}/files/"):
        return "The run has no outputs."
    packed = folder / f".job-{job}.zip"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        download.fetch(client, f"jobs/{job}/files/zip/", packed, quiet=quiet)
        with zipfile.ZipFile(packed) as archive:
            archive.extractall(folder)  # zipfile cuts names that would lead out of it
            count = len(archive.namelist())
        packed.unlink()
    except ClientError as exc:
        exc.message += f" Download them again: aip jobs download {job} --to {shlex.quote(str(folder))}"
        raise
    except OSError as exc:
        raise ClientError(f"{folder} is not writable: {exc.strerror}.") from exc
    return f"{count} {'file' if count == 1 else 'files'} in {folder}"
