"""Keep letters in order: store places in lanes, lease lanes, and find each lane's head (first unfinished letter)."""
