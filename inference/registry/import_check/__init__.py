"""Tries ways to read a model on example pictures and judges them. Needs ONNX Runtime, NumPy and Pillow, no platform."""
