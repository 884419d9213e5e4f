"""The processes of this service, and what each needs. Every deployment file is made from these values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, TypeAlias

PAGES, HEALTH = 8000, 8001  #: ports of the web process inside its container
USER: Final = 10001  #: id of the image's user and group; Kubernetes wants a number
TEMPORARY: Final = "/tmp"  # noqa: S108  # a tmpfs, the only writable folder: bodies of large requests
TEMPORARY_MB: Final = 64
ALIVE: Final = f"{TEMPORARY}/alive"
#: Exits with status 1 while a migration of this version is missing. A database of a later version is accepted.
WAIT_FOR_MIGRATION: Final = ("python", "manage.py", "migrate", "--check")


@dataclass(frozen=True, slots=True)
class HttpProbe:
    """A probe that succeeds if the process answers a request of this path with status 200."""

    path: str
    port: int = HEALTH

    @property
    def command(self) -> tuple[str, ...]:
        """Return the probe as a command, which runs inside the container and exits with status 0 on success."""
        url = f"http://127.0.0.1:{self.port}{self.path}"
        return ("python", "-c", f"import urllib.request as u; u.urlopen('{url}', timeout=5)")


@dataclass(frozen=True, slots=True)
class FileProbe:
    """A probe that succeeds if the process has touched this file within the last two minutes."""

    path: str = ALIVE

    @property
    def command(self) -> tuple[str, ...]:
        """Return the probe as a command inside the container. It runs every 30 s, so it does not use slow Python."""
        return ("sh", "-c", f"find {self.path} -mmin -2 | grep -q .")


Probe: TypeAlias = HttpProbe | FileProbe


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """A process of the service. It runs until it is stopped or, if `replicas` is 0, once before the other processes.

    Attributes:
        ready: the probe that decides whether the process gets page requests.
        alive: the liveness probe. If it fails, the process is restarted. It does not depend on other servers.
        cpu: thousandths of a core.
        memory: MiB.
        stop_within: seconds from SIGTERM to SIGKILL.
        replicas: how many containers to start; 0 for a process that runs once, before the others.
        ports: name and number of each port.
        environment: environment variables that only this process gets.
    """

    name: str
    command: tuple[str, ...]
    cpu: int
    memory: int
    stop_within: int
    replicas: int
    alive: Probe | None = None
    ready: HttpProbe | None = None
    ports: tuple[tuple[str, int], ...] = ()
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def runs_once(self) -> bool:
        """Return whether the process runs once and ends, before the other processes start."""
        return self.replicas == 0


def _worker(queue: str, concurrency: int) -> tuple[str, ...]:
    words = ("celery", "-A", "redrive_service", "worker", "--queues", queue, "--concurrency", str(concurrency))
    return (*words, "--loglevel", "INFO")


MIGRATE: Final = Process(
    name="migrate", command=("python", "manage.py", "migrate", "--noinput"), cpu=250, memory=512, stop_within=30,
    replicas=0,
)  # fmt: skip
WEB: Final = Process(
    name="web",
    command=("python", "manage.py", "serve", "--bind", f"0.0.0.0:{PAGES}", "--health", f"0.0.0.0:{HEALTH}"),
    cpu=500,
    memory=1024,
    stop_within=40,  # 5 s until load balancers notice, then 25 s for running requests (server.py)
    replicas=2,
    alive=HttpProbe("/healthz"),
    ready=HttpProbe("/readyz"),
    ports=(("pages", PAGES), ("health", HEALTH)),
)
_TOUCHES: Final = {"REDRIVE_ALIVE_FILE": ALIVE}
#: A stopping worker finishes its running tasks. A capture takes up to 150 s; other tasks take seconds.
WORKERS: Final = (
    Process(
        name="worker-control", command=_worker("redrive-control", 2), cpu=500, memory=1024, stop_within=90,
        replicas=1, alive=FileProbe(), environment=_TOUCHES,
    ),
    Process(
        name="worker-capture", command=_worker("redrive-capture", 2), cpu=500, memory=1024, stop_within=180,
        replicas=1, alive=FileProbe(), environment=_TOUCHES,
    ),
    Process(
        name="worker-replay", command=_worker("redrive-replay", 4), cpu=1000, memory=2048, stop_within=90,
        replicas=2, alive=FileProbe(), environment=_TOUCHES,
    ),
)  # fmt: skip
#: One beat leads, the other takes over within 10 s (docs/adr/0002).
BEAT: Final = Process(
    name="beat",
    command=("celery", "-A", "redrive_service", "beat", "--loglevel", "INFO"),
    cpu=250,
    memory=512,
    stop_within=30,
    replicas=2,
    alive=FileProbe(),
    environment=_TOUCHES,
)
#: In the order in which they are deployed.
PROCESSES: Final = (MIGRATE, WEB, *WORKERS, BEAT)
