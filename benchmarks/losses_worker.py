"""What both scripts of a contestant share: wait for a line, run once, say how long it took and how far memory rose."""

import json
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path

GIGABYTE = 10**9
ALLOWED = 12 * GIGABYTE  # beyond what the libraries have taken when they are loaded


def memory(field: str) -> int:
    """Bytes by /proc/self/status: VmSize, VmRSS, or VmHWM, the highest VmRSS."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) * 1024
    raise SystemExit(f"/proc/self/status has no {field}: this benchmark needs Linux.")


def bound_memory() -> None:
    """What would need more than the allowed memory fails alone, before it drives the machine into the ground."""
    limit = memory("VmSize") + ALLOWED
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def serve(run: Callable[[], object], **known: object) -> None:
    """Warms up, says so with what is known, and then answers each line of the standard input: seconds of one run.

    Short runs are repeated for a twentieth of a second, and divided, after one that does not count: the first after a
    pause is slower than the rest.
    """
    began = time.perf_counter()
    run()
    repeats = 1
    if time.perf_counter() - began < 2:
        run()
        began = time.perf_counter()
        run()
        repeats += int(0.05 / (time.perf_counter() - began))
    print(json.dumps(known), flush=True)
    for _ in sys.stdin:
        Path("/proc/self/clear_refs").write_text("5")  # VmHWM starts anew
        before = memory("VmRSS")
        if repeats > 1:
            run()
        began = time.perf_counter()
        for _ in range(repeats):
            run()
        seconds = (time.perf_counter() - began) / repeats
        print(json.dumps({"seconds": seconds, "rise": memory("VmHWM") - before}), flush=True)
