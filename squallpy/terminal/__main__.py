"""`python -m squallpy.terminal` is `squall`."""

import sys

from squallpy.terminal.cli import main

sys.exit(main())
