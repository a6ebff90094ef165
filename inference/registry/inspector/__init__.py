"""Program that reads the files of a model inside a sandbox; `inspections` starts it and reads its reply.

It unpacks an archive, reads what the files say, and opens an ONNX file once with ONNX Runtime. It needs no database.
"""
