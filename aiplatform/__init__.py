"""The frame: mounts every app, and holds no rules of any of them."""

__version__ = "0.1.0"
