"""Models in use: registry, evaluation, conversion, serving, batch prediction, video, delivery, pipelines.

`kit` and the programs (`serving.server`, `evaluation.evaluator`, …) import nothing of the platform: they are copied
into runs under the same package name and start there.
"""

import os

# Read by ONNX Runtime when it is loaded: from 1.29 on it tells its maker names and checksums of models otherwise.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
