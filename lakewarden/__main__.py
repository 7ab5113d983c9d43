"""`python -m lakewarden` is the command line."""

import sys

from lakewarden.cli import main

if __name__ == "__main__":
    sys.exit(main())
