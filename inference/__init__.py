"""Models in use: registry, evaluations, services.

`inference.server` and `inference.evaluator` know nothing of the platform: they are
copied into a run under this same package name and start there by themselves.
"""

import os

# Read by ONNX Runtime when it is loaded: from 1.29 on it tells its maker names and checksums of models otherwise.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
