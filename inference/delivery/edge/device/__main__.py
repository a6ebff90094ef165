"""`python -m inference.delivery.edge.device`, and what the one file that devices get begins with."""

import sys

from .cli import main

sys.exit(main(sys.argv[1:]))
