"""`python -m aiplatform.client`."""

from aiplatform.client.main import main

raise SystemExit(main())
