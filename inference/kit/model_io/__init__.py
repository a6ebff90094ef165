"""Model specification, input images and runtimes: what reads an image and runs a model file."""
