"""``python -m dq_client module:app`` is ``dq-worker module:app``."""

import sys

from .cli import main

sys.exit(main())
