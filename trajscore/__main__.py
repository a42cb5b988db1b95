"""``python -m trajscore`` is the command ``trajscore``."""

import sys

from trajscore.cli import main

sys.exit(main())
