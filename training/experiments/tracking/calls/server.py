"""Calls about the server itself."""

from __future__ import annotations

from training.experiments.tracking.calls import Answer, CallContext, answers


@answers("GET", "server-info", base="api/3.0/mlflow/")
def info(_asked: CallContext) -> Answer:
    return {
        "store_type": "SqlStore",
        "workspaces_enabled": False,
        "multipart_uploads_enabled": False,
        "multipart_downloads_enabled": False,
    }
