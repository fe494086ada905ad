"""Fuzz for a while: ``python tests/fuzz/run.py --seconds 600``, or ``make fuzz``.

Goes round the targets, each time with other inputs. It stops at the first exception, with the
smallest input that raises it and the seed that finds it again.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import time
import traceback
from collections import Counter
from datetime import timedelta

from hypothesis import HealthCheck, given, seed, settings
from targets import TARGETS, Target

ROUND = 400
"""Inputs of one target before the next one has its turn."""
SLOWEST = timedelta(seconds=20)
"""What no input may take, however tiring."""


def tried(target: Target, number: int) -> int:
    """One round of a target; how many inputs it had.

    Raises:
        Exception: whatever escapes.
    """
    count = 0

    def check(each: object) -> None:
        nonlocal count
        count += 1
        target.check(each)

    limits = settings(
        max_examples=ROUND,
        deadline=SLOWEST,
        derandomize=False,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    seed(number)(limits(given(target.inputs)(check)))()
    return count


def main() -> int:
    """Fuzz until the time is over; 1 where something escapes."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    seconds = float(os.environ.get("FUZZ_SECONDS", "600"))
    parser.add_argument("--seconds", type=float, default=seconds, help="how long (FUZZ_SECONDS)")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    parser.add_argument("--only", action="append", choices=list(TARGETS), help="repeatable")
    arguments = parser.parse_args()
    end = time.monotonic() + arguments.seconds
    counts: Counter[str] = Counter()
    number = arguments.seed
    while not counts or time.monotonic() < end:
        for name in arguments.only or TARGETS:
            try:
                counts[name] += tried(TARGETS[name], number)
            except Exception:  # whatever escapes is what is looked for
                traceback.print_exc()
                print(f"found again by: --seconds 1 --only {name} --seed {number}")
                return 1
        number += 1
    for name, count in counts.items():
        print(f"{name:20} {count:,} inputs")
    return 0


if __name__ == "__main__":
    sys.exit(main())
