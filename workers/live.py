"""Nudges to web processes that something about a job is new. The only file that knows Channels group names.

A nudge carries no content: whoever watches reads the rows and the log file. Losing one costs at most
two seconds, so a dead broker is logged and nothing more.
"""

from __future__ import annotations

import asyncio
from functools import cache
from typing import Any

import redis
from asgiref.sync import async_to_sync
from channels.layers import get_channel_layer
from channels_redis.pubsub import RedisPubSubChannelLayer
from django.conf import settings
from django.db import transaction

from aiplatform.lib import nudging, redis_client

TELL_S = 1.0


def job_group(job_id: int) -> str:
    """Group of everybody who watches a job."""
    return f"job.{job_id}"


def nudge(*job_ids: int, log_bytes: int | None = None) -> None:
    """Say, once the transaction commits, that state, metrics or log of these jobs moved on.

    Args:
        log_bytes: bytes of the newest attempt's log that exist now, if that is the news.
    """
    if not job_ids:
        return
    message: dict[str, object] = {"type": "job.moved"}
    if log_bytes is not None:
        message["log_bytes"] = log_bytes

    def send() -> None:
        layer = get_channel_layer()
        if layer is None:
            return
        what = f"news of jobs={job_ids}"
        if isinstance(layer, RedisPubSubChannelLayer):
            nudging.attempt(lambda: _publish(layer, job_ids, message), what)
            return

        async def tell() -> None:
            # the layer itself waits for ever: its time-out would also cut idle sockets
            async with asyncio.timeout(TELL_S):
                for job_id in job_ids:
                    await layer.group_send(job_group(job_id), message)

        nudging.attempt(async_to_sync(tell), what)

    transaction.on_commit(send, robust=True)


def _publish(layer: RedisPubSubChannelLayer, job_ids: tuple[int, ...], message: dict[str, object]) -> None:
    """What the layer's own `group_send` does, over a connection that is kept.

    The layer is asynchronous: called from here it would make an event loop and a connection for every word.
    """
    with _client().pipeline(transaction=False) as pipe:
        for job_id in job_ids:
            pipe.publish(f"asgi__group__{job_group(job_id)}", layer.serialize(message))
        pipe.execute()


@cache
def _client() -> redis.Redis:
    layers: Any = settings.CHANNEL_LAYERS
    address = layers["default"]["CONFIG"]["hosts"][0]["address"]
    return redis_client.connect(address, timeout_s=TELL_S / 2)
