"""The process that owns a user's processes on one node: one per attempt and rank.

Standard library only, and nothing of the platform: it is started detached, so
that web, scheduler, Celery workers, broker and database may all die and come
back while the training never notices. It is steered by one small file (`requested`)
and tells what it knows by three others, see `records`.
"""
