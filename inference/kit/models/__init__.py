"""Loaded models: model.json, composed models, predictions without a server, statistics."""
