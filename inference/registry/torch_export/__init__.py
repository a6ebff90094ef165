"""Versions as programs of torch.export: made by a job beside the version, downloaded, never opened by the platform."""
