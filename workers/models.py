"""Tables of this app. Django looks for them here; code imports them from the packages that define them."""

from workers.core import models as _core  # noqa: F401  Django looks for tables here
