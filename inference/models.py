"""Tables of this app. Django looks for them here; code imports them from the packages that define them."""

from inference.batch import models as _batch  # noqa: F401  Django looks for tables here
from inference.conversion import models as _conversion  # noqa: F401  Django looks for tables here
from inference.delivery.edge import models as _edge  # noqa: F401  Django looks for tables here
from inference.delivery.push import models as _push  # noqa: F401  Django looks for tables here
from inference.evaluation import models as _evaluation  # noqa: F401  Django looks for tables here
from inference.evaluation.custom_scripts import models as _custom_scripts  # noqa: F401  Django looks for tables here
from inference.registry import models as _registry  # noqa: F401  Django looks for tables here
from inference.registry.composition import models as _composition  # noqa: F401  Django looks for tables here
from inference.registry.selftest import models as _selftest  # noqa: F401  Django looks for tables here
from inference.serving import models as _serving  # noqa: F401  Django looks for tables here
from inference.serving.feedback import models as _feedback  # noqa: F401  Django looks for tables here
from inference.serving.keys import models as _keys  # noqa: F401  Django looks for tables here
from inference.serving.monitoring import models as _monitoring  # noqa: F401  Django looks for tables here
from inference.video import models as _video  # noqa: F401  Django looks for tables here
