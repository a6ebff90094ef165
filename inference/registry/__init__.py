"""Model registry: models, versions, import, stages, lineage, packages."""
