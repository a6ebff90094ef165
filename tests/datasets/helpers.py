"""Steps tests of this room share."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

from accounts.models import User
from datasets.models import Dataset, Import, Upload
from datasets.services import imports, uploads


def zipped(files: dict[str, bytes | str]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return out.getvalue()


def zipped_folder(folder: Path) -> bytes:
    return zipped({p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()})


def uploaded(owner: User, data: bytes, filename: str = "data.zip") -> Upload:
    """A complete upload, as if it had come in by tus."""
    upload = uploads.create(owner=owner, length=len(data), metadata={"filename": filename})
    upload.file.write_bytes(data)
    uploads.arrived(upload)
    upload.refresh_from_db()
    return upload


def checked(dataset: Dataset, data: bytes, *, annotated: bool = True) -> Import:
    """The import of an archive, taken to its report."""
    upload = uploaded(dataset.owner, data)
    row = imports.start(dataset=dataset, by=dataset.owner, annotated=annotated, upload_id=upload.pk)
    imports.run(row.pk)
    row.refresh_from_db()
    return row


def imported(dataset: Dataset, data: bytes, *, annotated: bool = True) -> Import:
    """The import of an archive, done."""
    row = checked(dataset, data, annotated=annotated)
    imports.commit(row, by=dataset.owner)
    imports.run(row.pk)
    row.refresh_from_db()
    return row
