"""`python -m askwise`."""

import sys

from askwise.cli import main

if __name__ == "__main__":
    sys.exit(main())
