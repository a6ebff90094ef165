"""All kinds of places, by the code that rows hold."""

from __future__ import annotations

from inference.push.fusion_director import FusionDirector
from inference.push.oci import Oci
from inference.push.put import Put
from inference.push.s3 import S3
from inference.push.ssh import Ssh
from inference.push.way import Way

WAYS: dict[str, Way] = {way.code: way for way in (Put(), S3(), Ssh(), Oci(), FusionDirector())}
