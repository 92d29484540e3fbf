"""``python -m scout_rl`` is the command ``scout``."""

import sys

from scout_rl.cli import main

sys.exit(main())
