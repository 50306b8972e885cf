"""`python -m azjax`."""

import sys

from azjax.cli import main

if __name__ == "__main__":
    sys.exit(main())
