"""Start the local SQS: `python -m redrive_service.sandbox.sqs`."""

import sys

from redrive_service.sandbox.sqs.command_line import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
