"""Models pushed to places of people's own: an HTTP server, S3, a machine by SSH, an OCI registry, Fusion Director."""
