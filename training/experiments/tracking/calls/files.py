"""Calls about files."""

from __future__ import annotations

from django.utils.translation import gettext as _

from aiplatform.lib import downloads, file_names
from training.experiments.tracking import artifacts, refusals
from training.experiments.tracking.calls import ARTIFACTS, Answer, CallContext, answers


@answers("PUT", "/<path:all>", base=ARTIFACTS, raw=True)
def upload(context: CallContext) -> Answer:
    owner, parts = artifacts.find(context.caller, context.at["path"], to_change=True)
    announced = context.request.headers.get("Content-Length", "")
    size = int(announced) if announced.isdecimal() and announced.isascii() and len(announced) < 19 else 0
    artifacts.write_file(owner, parts, context.request, size)  # type: ignore[arg-type]  # a request reads like a file
    return {}


@answers("GET", "/<path:all>", base=ARTIFACTS)
def get(context: CallContext) -> Answer:
    owner, parts = artifacts.find(context.caller, context.at["path"])
    descriptor = artifacts.opened(owner, parts)
    return downloads.send_file(context.request, descriptor, file_names.shown(parts[-1]))


@answers("GET", "", base=ARTIFACTS)
def listed(context: CallContext) -> Answer:
    """List the files of the requested folder; names are relative to it."""
    owner, parts = artifacts.find(context.caller, context.body.text("path", needed=True))
    rows = artifacts.listed(owner, parts)
    sized = [{} if row.is_folder else {"file_size": row.size_bytes} for row in rows]
    return {
        "files": [{"path": row.name, "is_dir": row.is_folder} | size for row, size in zip(rows, sized, strict=True)]
    }


@answers("DELETE", "/<path:all>", base=ARTIFACTS)
def delete(context: CallContext) -> Answer:
    raise refusals.Unknown(
        _("Files of a run cannot be deleted separately. Delete the run, or the files on its job page.")
    )
