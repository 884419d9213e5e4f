"""A provider in a process of its own, until its standard input ends. It prints its port."""

from __future__ import annotations

import os
import sys

os.environ["AUTHLIB_INSECURE_TRANSPORT"] = "1"  # http on loopback

from oidc_provider_mock import User, run_server_in_thread

people = [
    User(sub="ann-1", claims={"preferred_username": "ann", "groups": ["redrive-ops"]}),
    User(sub="ben-1", claims={"preferred_username": "ben", "groups": ["others"]}),
]
with run_server_in_thread(user_claims=people) as server:
    print(server.server_port, flush=True)  # noqa: T201  whoever started it waits for this line
    sys.stdin.read()
