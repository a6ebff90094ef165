"""Samples with known answers that packages carry: devices compare their own answers before they use a model."""
