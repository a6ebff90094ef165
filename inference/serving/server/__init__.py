"""The model server: one process per service, Open Inference Protocol v2 and image → JSON.

Starlette, an asyncio batcher and ONNX Runtime; no torch, no Django. Started by
`python -m inference.serving.server` from a run's `code/`, configured by the environment (settings.py).
"""
