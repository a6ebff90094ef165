"""`python -m aiplatform.cli.client`."""

from aiplatform.cli.client.main import main

raise SystemExit(main())
