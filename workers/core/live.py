"""Nudges to web processes that something about a job is new. The only file that knows Channels group names.

A nudge carries no content: whoever watches reads the rows and the log file. Losing one costs at most
two seconds, so a dead broker is logged and nothing more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import cache
from typing import Any

import redis
from asgiref.sync import async_to_sync
from channels.layers import get_channel_layer
from channels_redis.pubsub import RedisPubSubChannelLayer
from django.conf import settings

from aiplatform.lib import after_commit, nudging, redis_client

TELL_S = 1.0


def job_group(job_id: int) -> str:
    """Group of everybody who watches a job."""
    return f"job.{job_id}"


def nudge(*job_ids: int, log_bytes: int | None = None) -> None:
    """Say, once the transaction commits, that state, metrics or log of these jobs moved on.

    Args:
        log_bytes: bytes of the newest attempt's log that exist now, if that is the news.
    """
    if job_ids:
        after_commit.send("live", (job_ids, log_bytes), _publish_all)


def _publish_all(news: Sequence[tuple[Sequence[int], int | None]]) -> None:
    layer = get_channel_layer()
    if layer is None:
        return
    messages = [(job_group(job_id), _message(log_bytes)) for job_ids, log_bytes in news for job_id in job_ids]
    what = f"news of {', '.join(group for group, _message in messages)}"
    if isinstance(layer, RedisPubSubChannelLayer):
        nudging.attempt(lambda: _publish(layer, messages), what)
        return

    async def send() -> None:
        # the layer itself waits for ever: its time-out would also cut idle sockets
        async with asyncio.timeout(TELL_S):
            for group, message in messages:
                await layer.group_send(group, message)

    nudging.attempt(async_to_sync(send), what)


def _message(log_bytes: int | None) -> dict[str, object]:
    return {"type": "job.moved"} | ({} if log_bytes is None else {"log_bytes": log_bytes})


def _publish(layer: RedisPubSubChannelLayer, messages: Sequence[tuple[str, dict[str, object]]]) -> None:
    """What the layer's own `group_send` does, over a connection that is kept.

    The layer is asynchronous: called from here it would make an event loop and a connection for every word.
    """
    with _client().pipeline(transaction=False) as pipe:
        for group, message in messages:
            pipe.publish(f"asgi__group__{group}", layer.serialize(message))
        pipe.execute()


@cache
def _client() -> redis.Redis:
    layers: Any = settings.CHANNEL_LAYERS
    address = layers["default"]["CONFIG"]["hosts"][0]["address"]
    return redis_client.connect(address, timeout_s=TELL_S / 2)
