"""`python -m pto`: the command `pto`."""

import sys

from pto.cli.main import main

sys.exit(main())
