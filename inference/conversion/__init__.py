"""Conversions: a model version in other variants, each checked on real images before anybody uses it."""
