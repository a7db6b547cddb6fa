"""Check the protocol of schema changes itself: every interleaving of small transactions with every change that the
planner plans, from its real tables of states, lifecycles and rules. The exit code is 0 only if the database stays
consistent with every version in use. With --break a safeguard is removed, and the exit code is 1 with the steps that
lead to the damage."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from typing import cast

from seachange.model.statements import DdlStatement
from seachange.sql.parsing.parse import parse_script
from seachange.verify.model.check import Finding, check_protocol
from seachange.verify.model.mutants import PAIRS, SPARE
from seachange.verify.model.scenario import Protocol, Size
from seachange.verify.model.scenarios import mutants_of, scenarios_of

EXAMPLES = """examples:
  seachange verify
  seachange verify --break no-fence
  seachange verify --break cached-schema,no-lower-bound
  seachange verify --protocol f1 --break skip-delete-only
  seachange verify --list
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--protocol",
        choices=[protocol.value for protocol in Protocol],
        default=Protocol.SEACHANGE.value,
        help="seachange (the default), or the classic protocol of F1: cached schemas, backfill in place",
    )
    parser.add_argument(
        "--break",
        dest="broken",
        metavar="NAME[,NAME]",
        default="",
        help="remove these safeguards (--list shows them)",
    )
    parser.add_argument("--large", action="store_true", help="more nodes and rows; takes several minutes")
    parser.add_argument("--list", action="store_true", help="list the scenarios and the safeguards that can be removed")


def parse_ddl(text: str) -> Sequence[DdlStatement]:
    return cast("Sequence[DdlStatement]", parse_script(text))


def run(arguments: argparse.Namespace) -> int:
    protocol = Protocol(arguments.protocol)
    size = Size.LARGE if arguments.large else Size.DEFAULT
    if arguments.list:
        _print_list(protocol, size)
        return 0
    broken = tuple(name.strip() for name in arguments.broken.split(",") if name.strip())
    unknown = [name for name in broken if name not in mutants_of(protocol)]
    if unknown:
        known = ", ".join(sorted(mutants_of(protocol)))
        print(f"seachange verify: unknown safeguard {', '.join(unknown)}; known are {known}", file=sys.stderr)
        return 2
    return _report(check_protocol(protocol, size, broken, parse_ddl), protocol, broken)


def _report(findings: Iterable[Finding], protocol: Protocol, broken: tuple[str, ...]) -> int:
    mutants = mutants_of(protocol)
    print(f"protocol {protocol}" + (f", without {' and '.join(broken)}" if broken else ""))
    for name in broken:
        print(f"  {name}: it no longer holds that {mutants[name].without}")
    states = steps = 0
    complete = True
    for finding in findings:
        result = finding.result
        if result is None:
            print(f"  {finding.scenario}: the planner finds no plan without it", flush=True)
            continue
        states, steps = states + result.states, steps + result.steps
        if result.problem is not None:
            print(f"  {finding.scenario}: NOT consistent, after {result.states:,} states\n")
            for number, line in enumerate(result.trace, 1):
                print(f"  {number:>3}. {line}")
            print(f"\n  Then {result.problem}.")
            print(
                f"\nnot consistent: {len(result.trace)} steps lead to it; {states:,} states, {steps:,} steps explored"
            )
            return 1
        complete &= result.complete
        verdict = "consistent" if result.complete else "no problem found, but not all states were explored"
        print(f"  {finding.scenario}: {verdict}, {result.states:,} states", flush=True)
    print(f"{'consistent' if complete else 'not decided'}: {states:,} states, {steps:,} steps explored")
    return 0 if complete else 1


def _print_list(protocol: Protocol, size: Size) -> None:
    print(f"scenarios of protocol {protocol}:")
    for scenario in scenarios_of(protocol, size):
        print(f"  {scenario.name}: {'; '.join(scenario.changes)}")
    print("\nsafeguards that can be removed, and what no longer holds then:")
    mutants = mutants_of(protocol)
    pairs = PAIRS if protocol is Protocol.SEACHANGE else {}
    for name, mutant in mutants.items():
        if name not in SPARE:
            print(f"  {name}: {mutant.without}")
    for pair in pairs:
        # One of them does no harm alone, and so is not listed alone.
        print(f"  {','.join(pair)}: {'; '.join(mutants[name].without for name in pair)}")
