"""The environment of the server of a service, whether its process is shared or not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aiplatform import env
from inference.registry.models import ModelVersion
from inference.serving import limits
from inference.serving.models import Service


def environment(service: Service, version: ModelVersion, options: Mapping[str, Any]) -> dict[str, str]:
    """Variables of a server that answers with a version; without where its files lie, and its key."""
    called = service.model_version.model.name if service.model_version else version.model.name
    return {
        "AIP_MODEL_NAME": version.model.name,
        "AIP_MODEL_ALSO": called,  # as callers of the service know it
        "AIP_MODEL_VERSION": str(version.number),
        "AIP_SERVE_MAX_BATCH": str(options["max_batch"]),
        "AIP_SERVE_MAX_DELAY_MS": str(options["max_delay_ms"]),
        **limits.environment(options),
        "AIP_SERVE_MAX_PIXELS": str(env.MAX_IMAGE_PIXELS),  # what can be imported can be asked about
    }
