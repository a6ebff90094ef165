"""How fast a model answers on the machine of its job. Needs ONNX Runtime and NumPy, and no platform."""
