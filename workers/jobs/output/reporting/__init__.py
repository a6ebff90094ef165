"""Readers of the files in which programs report without knowing this platform: TensorBoard's, CSV, JSON lines, …"""
