"""Pipelines: steps on data and models, drawn or written once and run again and again."""
