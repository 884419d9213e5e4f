"""Play one seed again, note it, and print what happened: python -m tests.proof.simulation SEED."""

import sys

from tests.proof.asked import play_again

if __name__ == "__main__":
    sys.exit(play_again("simulation", "one_seed_again"))
