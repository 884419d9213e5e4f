"""Play one seed again, note it, and tell its tale: python -m tests.proof.simulation SEED."""

import os
import sys
from pathlib import Path

import pytest

from tests.proof.asked import refused
from tests.proof.names import A_NUMBER, is_number, misused

if __name__ == "__main__":
    if len(sys.argv) != 2 or not is_number(sys.argv[1]):
        misused(f"Usage: .venv/bin/python -m tests.proof.simulation SEED, where SEED is {A_NUMBER}.")
    if why := refused(os.environ):
        sys.exit(why)
    os.environ["PROVE_SEED"] = sys.argv[1]
    here = str(Path(__file__).parent)
    sys.exit(pytest.main([here, "-m", "prove", "-k", "one_seed_again", "-s", "-q", "--timeout", "0"]))
