"""Versions as programs of torch.export: created by a job, stored next to the version, never opened by the platform."""
