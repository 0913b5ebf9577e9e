"""Run scenarios, print what they tried and found as a table, and fail if anything was found."""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from everview.compute.functions.datetime_input import duration_ms
from tests.torture import bombs, clocks, disks, fuzz, kills, silent, soak
from tests.torture.report import LONG, SHORT, Report, Scenario, Size

SCENARIOS: dict[str, Scenario] = {
    "kills": kills.run,
    "bombs": bombs.run,
    "fuzz": fuzz.run,
    "silent": silent.run,
    "disks": disks.run,
    "clocks": clocks.run,
    "soak": soak.run,
}

EXAMPLES = """examples:
  python -m tests.torture                            all scenarios in their long forms: two hours or so
  python -m tests.torture --short                    all in their short forms: a minute or so
  python -m tests.torture kills --kills 50           one scenario
  python -m tests.torture soak --soak 10m --spark    mixed load on Spark
  python -m tests.torture fuzz --seed 7              what a run with this seed did, again
"""


def main(arguments: list[str]) -> int:
    """Run what is asked for; 1 if there was an anomaly."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.torture",
        description=__doc__,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "scenarios", nargs="*", metavar="scenario", help=f"some of {', '.join(SCENARIOS)}; default: all"
    )
    parser.add_argument("--seed", type=int, help="repeat a run; default: a new one, which is printed")
    parser.add_argument("--short", action="store_true", help="the forms that run on every change")
    parser.add_argument("--kills", type=int, help=f"kills of the server without Spark (default {LONG.kills})")
    parser.add_argument("--spark-kills", type=int, help=f"kills of the server on Spark (default {LONG.spark_kills})")
    parser.add_argument("--messages", type=int, help=f"messages of the fuzz (default {LONG.messages:,})")
    parser.add_argument("--silent", type=int, help=f"slow and silent clients of each kind (default {LONG.silent})")
    parser.add_argument("--faults", type=int, help=f"bursts of failing writes (default {LONG.faults})")
    parser.add_argument("--jumps", type=int, help=f"jumps of the wall clock (default {LONG.jumps})")
    parser.add_argument("--soak", metavar="DURATION", help="how long the soak takes (default 30m)")
    parser.add_argument("--spark", action=argparse.BooleanOptionalAction, help="whether Spark takes part")
    given = parser.parse_args(arguments)
    for name in given.scenarios:
        if name not in SCENARIOS:
            parser.error(f"no scenario named {name}: choose from {', '.join(SCENARIOS)}")
    size = _size(given)
    seed = random.randrange(2**32) if given.seed is None else given.seed
    print(f"torture: seed {seed} (--seed {seed} repeats it)")
    report = Report()
    for name in given.scenarios or SCENARIOS:
        print(f"{name}", flush=True)
        began = time.monotonic()
        with tempfile.TemporaryDirectory(prefix=f"everview-torture-{name}-", ignore_cleanup_errors=True) as folder:
            for line in SCENARIOS[name](size, random.Random(f"{seed} {name}"), Path(folder)):
                report.add(name, line)
        print(f"  {time.monotonic() - began:.0f} s", flush=True)
    print()
    print(report.table())
    print()
    print(f"seed {seed}, {report.anomalies} anomalies" if report.anomalies else f"seed {seed}, no anomalies")
    return 1 if report.anomalies else 0


def _size(given: argparse.Namespace) -> Size:
    size = SHORT if given.short else LONG
    names = ("kills", "spark_kills", "messages", "silent", "faults", "jumps", "spark")
    changed = {name: value for name in names if (value := getattr(given, name)) is not None}
    if given.soak is not None:
        minutes = given.soak.removesuffix("m")
        changed["soak_s"] = duration_ms(f"{minutes}min" if minutes.isdigit() else given.soak) / 1000
    return replace(size, **changed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
