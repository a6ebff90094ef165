"""The preset trainings: plain PyTorch that knows no platform.

This package is copied into a run's `code/presets/` and started there with
`python -m presets.detect`, `presets.classify` and so on, one for each card (or beneath torchrun).
It speaks with its surroundings by files alone; `run.py` says which.
"""

import gc
import os

if __name__ == "presets":  # a job's own process, not the platform that reads the cards
    gc.disable()  # until `run.begun`: hundreds of thousands of objects come into being by imports, none of them garbage

# Read by the OpenMP runtime when torch is loaded, so it has to stand here. Threads that spin while they wait for
# each other are a little faster alone and 15 times slower beside other jobs (measured: 17 s and 1.1 s a step).
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
# Read by ONNX Runtime when it is loaded: from 1.29 on it tells its maker names and checksums of models otherwise.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
