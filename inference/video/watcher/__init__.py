"""`python -m inference.video.watcher`: watch a video file or a stream with a detector, follow and count what it shows.

Runs without the platform: NumPy, SciPy, Pillow, ONNX Runtime, and PyAV, which is an extra of its own (`missing`).
"""
