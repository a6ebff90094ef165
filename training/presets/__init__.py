"""The preset trainings: plain PyTorch that knows no platform.

This package is copied into a run's `code/presets/` and started there with
`python -m presets.detect` or `python -m presets.classify` (or beneath torchrun).
It speaks with its surroundings by files alone; `run.py` says which.
"""
