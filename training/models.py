"""Tables of this app. Django looks for them here; code imports them from the packages that define them."""

from training.programs import models as _programs  # noqa: F401  Django looks for tables here
from training.runs import models as _runs  # noqa: F401  Django looks for tables here
