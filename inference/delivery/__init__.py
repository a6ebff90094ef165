"""Models outside of the platform: edge devices and push targets."""
