"""Settings of one server process, from the environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Settings:
    """Limits that protect the service from its callers. Each has its own refusal."""

    model_dir: Path
    model_name: str = "model"
    model_also: str = ""  # another name that callers may use for it, where it takes the place of another model
    model_version: str = "1"
    host: str = "127.0.0.1"
    port: int = 8000
    key: str = ""  # callers must send it as X-Aip-Service-Key; empty: anybody who reaches the port may call
    threads: int = 1  # of one inference
    decode_threads: int = 2
    max_batch: int = 8  # images put into one run of the model
    max_delay_s: float = 0.002  # how long a batch waits for requests already on their way
    queue_limit: int = 128  # images waiting; more are answered 429
    request_batch_limit: int = 64  # images in one request
    deadline_s: float = 30.0  # from the first byte to the answer
    max_body_bytes: int = 64 << 20
    max_answer_bytes: int = 256 << 20
    left_in: Path | None = None  # where the last counts are written when the server is stopped
    statistics: bool = True  # what pictures and answers are like is counted
    keep_percent: float = 0.0  # of the pictures, kept for annotation by chance
    keep_below: float = 0.0  # pictures with an answer of a lower score are kept
    max_pixels: int = 50_000_000
    stall_s: float = 120.0  # one run of the model taking longer ends the process, to be restarted


def from_env(env: Mapping[str, str] = os.environ) -> Settings:
    """Read the settings of this process.

    Raises:
        ValueError: a variable is missing or is not a number; the message names it.
    """
    if not env.get("AIP_MODEL_DIR"):
        raise ValueError("AIP_MODEL_DIR must name the directory that holds the model.")
    threads = _number(env, "OMP_NUM_THREADS", 1)
    most_of_request = int(_number(env, "AIP_SERVE_REQUEST_BATCH", 64))
    return Settings(
        model_dir=Path(env["AIP_MODEL_DIR"]),
        model_name=env.get("AIP_MODEL_NAME") or "model",
        model_also=env.get("AIP_MODEL_ALSO", ""),
        model_version=env.get("AIP_MODEL_VERSION") or "1",
        host=env.get("AIP_HOST") or "127.0.0.1",
        port=int(_number(env, "AIP_PORT", 8000)),
        key=env.get("AIP_SERVICE_KEY", ""),
        threads=max(1, int(threads)),
        max_batch=max(1, int(_number(env, "AIP_SERVE_MAX_BATCH", 8))),
        max_delay_s=_number(env, "AIP_SERVE_MAX_DELAY_MS", 2) / 1000,
        queue_limit=max(int(_number(env, "AIP_SERVE_QUEUE", 128)), most_of_request),
        request_batch_limit=most_of_request,
        deadline_s=_number(env, "AIP_SERVE_DEADLINE_S", 30),
        max_body_bytes=int(_number(env, "AIP_SERVE_MAX_BODY_MIB", 64)) << 20,
        max_answer_bytes=int(_number(env, "AIP_SERVE_MAX_ANSWER_MIB", 256)) << 20,
        left_in=Path(env["AIP_OUTPUT_DIR"]) if env.get("AIP_OUTPUT_DIR") else None,
        statistics=env.get("AIP_SERVE_STATISTICS", "1") != "0",
        keep_percent=_number(env, "AIP_SERVE_KEEP_PERCENT", 0),
        keep_below=_number(env, "AIP_SERVE_KEEP_BELOW", 0) / 100,
        max_pixels=int(_number(env, "AIP_SERVE_MAX_PIXELS", 50_000_000)),
        stall_s=_number(env, "AIP_SERVE_STALL_S", 120),
    )


def _number(env: Mapping[str, str], name: str, default: float) -> float:
    text = env.get(name)
    if not text:
        return default
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{name} must be a number, not {text!r}.") from None
