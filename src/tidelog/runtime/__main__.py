"""`python -m tidelog.runtime --config FILE`: one node as a process, started by the supervisor."""

import sys

from tidelog.runtime.no_test_libraries import keep_test_libraries_out

if __name__ == "__main__":
    keep_test_libraries_out()
    from tidelog.runtime.server import main

    sys.exit(main(sys.argv[1:]))
