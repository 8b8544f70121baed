"""`msda-bench store`: checks or merges result folders."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from msda_bench.cli.lines import say
from msda_bench.cli.parser import Commands

if TYPE_CHECKING:
    from msda_bench.store.store import Store
    from msda_bench.store.verify import Verified


def add_parser(commands: Commands) -> None:
    """Adds the command."""
    parser = commands.add_parser("store", help="check or merge result folders")
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    verify = actions.add_parser("verify", help="check every record of result folders against its sha256")
    verify.add_argument("folders", type=Path, metavar="DIR", nargs="+", help="result folders, such as results/*")
    verify.add_argument(
        "--strict",
        action="store_true",
        help="check published results: every record is in the plan, none was set aside, the tables match the records",
    )
    verify.set_defaults(handler=_verify)
    merge = actions.add_parser("merge", help="copy the results of other folders into the first")
    merge.add_argument("folder", type=Path, metavar="INTO", help="the folder that receives the results")
    merge.add_argument("others", type=Path, metavar="FROM", nargs="+", help="folders to copy from; they do not change")
    merge.set_defaults(handler=_merge)


def _verify(args: argparse.Namespace) -> int:
    from msda_bench.store.store import Store
    from msda_bench.store.verify import verify

    stores = [Store(folder) for folder in args.folders]  # reports a wrong name before reading anything
    code = 0
    for store in stores:
        found = verify(store)
        unfit = [*_unfit(store, found)] if args.strict else []
        for line in (*found.bad, *found.conflicts, *unfit):
            say(line)
        counts = f"{found.records} intact, {len(found.bad)} bad, {len(found.conflicts)} in conflict"
        rest = f"{found.failures} failures, {found.aside} set aside earlier, {found.removed} leftovers removed"
        say(f"{store.folder}: {counts}; {rest}{_of_the_records(found)}")
        code = 1 if found.bad or found.conflicts or unfit else code
    return code


def _of_the_records(found: Verified) -> str:
    """The number of unplanned records, and the systems that made the records."""
    from msda_bench.results.words import listed

    made = [f"{n} on {on}" for on, n in found.made_on.most_common() if on is not None]
    beyond = f"; {len(found.unplanned)} not in plan.json" if found.unplanned else ""
    return f"{beyond}; made {listed(made)}" if made else beyond


def _unfit(store: Store, found: Verified) -> Iterator[str]:
    """A line for each fault that matters only in published results."""
    from msda_bench.errors import BenchError
    from msda_bench.results.current import outdated

    yield from found.unplanned
    if found.aside:
        yield f"{store.folder}: {found.aside} damaged records were set aside; remove the files *.bad-*"
    if found.bad:
        return
    try:
        yield from outdated(store.folder)
    except BenchError as error:
        yield from error.lines


def _merge(args: argparse.Namespace) -> int:
    from msda_bench.store.merge import merge
    from msda_bench.store.store import Store

    sources = [Store(folder) for folder in args.others]  # reports a wrong name before copying anything
    into = Store.create(args.folder)
    code = 0
    for source in sources:
        found = merge(into, source)
        for line in (*found.bad, *found.conflicts, *found.notes):
            say(line)
        counts = f"{found.copied} copied, {found.present} already present"
        faults = f"{len(found.conflicts)} in conflict, {len(found.bad)} bad"
        failures = f"; {found.failures} failures copied" if found.failures else ""
        say(f"{source.folder}: {counts}, {faults}{failures}")
        code = 1 if found.bad or found.conflicts else code
    return code
