"""`python -m pto`: the command `pto`."""

import sys

from pto.cli.main import main

if __name__ == "__main__":  # processes that are started by `spawn` import this module again
    sys.exit(main())
