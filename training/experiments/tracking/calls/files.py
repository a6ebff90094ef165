"""Calls about files."""

from __future__ import annotations

from django.utils.translation import gettext as _

from aiplatform.lib import downloads, file_names
from training.experiments.tracking import artifacts, refusals
from training.experiments.tracking.calls import ARTIFACTS, Answer, Asked, answers


@answers("PUT", "/<path:all>", base=ARTIFACTS, raw=True)
def put(asked: Asked) -> Answer:
    owner, parts = artifacts.find(asked.caller, asked.at["path"], to_change=True)
    announced = asked.request.headers.get("Content-Length", "")
    size = int(announced) if announced.isdecimal() and announced.isascii() and len(announced) < 19 else 0
    artifacts.put(owner, parts, asked.request, size)  # type: ignore[arg-type]  # a request reads like a file
    return {}


@answers("GET", "/<path:all>", base=ARTIFACTS)
def get(asked: Asked) -> Answer:
    owner, parts = artifacts.find(asked.caller, asked.at["path"])
    descriptor = artifacts.opened(owner, parts)
    return downloads.send_file(asked.request, descriptor, file_names.shown(parts[-1]))


@answers("GET", "", base=ARTIFACTS)
def listed(asked: Asked) -> Answer:
    """Names are those in the folder that was asked for."""
    owner, parts = artifacts.find(asked.caller, asked.body.text("path", needed=True))
    rows = artifacts.listed(owner, parts)
    sized = [{} if row.is_folder else {"file_size": row.size_bytes} for row in rows]
    return {
        "files": [{"path": row.name, "is_dir": row.is_folder} | size for row, size in zip(rows, sized, strict=True)]
    }


@answers("DELETE", "/<path:all>", base=ARTIFACTS)
def delete(asked: Asked) -> Answer:
    raise refusals.Unknown(_("Files of a run stay with it. Delete the run, or the files on the page of its job."))
