"""Read an archive of torch in a sandbox: weights become safetensors, programs ONNX. Needs torch, and no platform."""
