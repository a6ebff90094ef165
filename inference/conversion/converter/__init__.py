"""The variants a model can be converted to: made, checked on real samples, timed. Needs onnx, and no platform."""
