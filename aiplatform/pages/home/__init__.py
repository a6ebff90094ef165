"""The home page: sections that apps register, the first-run guide, approvals."""
