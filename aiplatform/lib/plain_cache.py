"""What the cache holds is JSON: other machines can write there, and a pickle would run in whoever reads it."""

from __future__ import annotations

import json
from typing import Any


class PlainSerializer:
    """For Django's RedisCache, in place of its pickles."""

    def dumps(self, value: Any) -> bytes:
        """UTF-8 JSON.

        Raises:
            TypeError: the value has no form in JSON.
        """
        return json.dumps(value).encode()

    def loads(self, data: bytes) -> Any:
        """The value.

        Raises:
            ValueError: it is no JSON.
        """
        return json.loads(data)
