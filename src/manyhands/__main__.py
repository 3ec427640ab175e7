import sys

from manyhands.cli import main

sys.exit(main())
