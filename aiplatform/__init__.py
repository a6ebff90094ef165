"""The frame: mounts every app, holds no business."""

__version__ = "0.1.0"
