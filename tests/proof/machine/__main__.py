"""Play one chunk of examples again, and note it: python -m tests.proof.machine CHUNK."""

import sys

from tests.proof.asked import play_again

if __name__ == "__main__":
    sys.exit(play_again("machine", "one_chunk_again"))
