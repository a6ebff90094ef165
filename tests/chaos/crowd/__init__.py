"""Virtual people and viewers of logs, in a process of their own; a ledger keeps what they asked for and were told.

Nothing here knows the platform's code: they use its pages, its API, its uploads and its sockets, as people do.
"""
