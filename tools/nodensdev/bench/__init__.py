# SPDX-License-Identifier: Apache-2.0
"""`tools/dev bench`: what a pod costs, by container runtime, beside the bare engine."""
import argparse
import json
import time

from ..command import Command, Failure, one_of
from ..project import TOP

RUNTIMES = ("containerd", "nodens")
KNOWN = (*RUNTIMES, "cri-o")        # cri alone: of those that it can measure
LIMIT = 0.15


def cri(args: argparse.Namespace) -> int:
    from . import guest_run, report, table
    runtimes = tuple(args.runtime.split(","))
    if set(runtimes) - set(KNOWN):
        raise Failure(f"--runtime {args.runtime}: there are {', '.join(KNOWN)}, separated by commas")
    modes = ("on", "off") if args.userns == "both" else (args.userns,)
    data = guest_run.run(guest_run.Plan(runtimes, args.pods or 20, args.parallel, args.rounds, modes, args.kernel))
    report.RESULTS.mkdir(parents=True, exist_ok=True)
    path = report.RESULTS / f"cri-{time.strftime('%Y%m%d-%H%M%S')}.json"
    path.write_text(json.dumps(data, indent=1))
    print(table.as_text(data))
    print(f"\n{path.relative_to(TOP)}")
    return 0


def pull_images(args: argparse.Namespace) -> int:
    from . import pulls
    data = pulls.run(args.rounds)
    path = pulls.save(data)
    print(pulls.as_text(data))
    print(f"\n{path.relative_to(TOP)}")
    return 0


def many_layers(args: argparse.Namespace) -> int:
    from . import layers
    if args.action == "layers":
        data = layers.run_small(args.rounds, args.layers or 50, args.pods or 100)
    else:
        data = layers.run_large(args.rounds, args.layers or 60, args.gigabytes * 10**9)
    path = layers.save(data)
    print(layers.as_text(data))
    print(f"\n{path.relative_to(TOP)}")
    return 0


def fill_node(args: argparse.Namespace) -> int:
    from . import growth
    data = growth.run(args.rounds)
    path = growth.save(data)
    print(growth.as_text(data))
    print(f"\n{path.relative_to(TOP)}")
    return 0


def guard_reviews(args: argparse.Namespace) -> int:
    from . import guard
    data = guard.run(args.seconds, args.kyverno)
    path = guard.save(data)
    if not args.no_page:
        guard.write_document(data)
    print(guard.as_text(data))
    for line in guard.misses(data):
        print(f"not reached: {line}")
    print(f"\n{path.relative_to(TOP)}" + ("" if args.no_page else f" and {guard.DOCUMENT.relative_to(TOP)}"))
    return 0


def version_floor(args: argparse.Namespace) -> int:
    from . import floor
    data = floor.run(args.seconds)
    path = floor.save(data)
    if not args.no_page:
        floor.write_document(data)
    print(floor.as_text(data))
    for line in floor.misses(data):
        print(f"not reached: {line}")
    print(f"\n{path.relative_to(TOP)}" + ("" if args.no_page else f" and {floor.DOCUMENT.relative_to(TOP)}"))
    return 0


def rootless_nodes(args: argparse.Namespace) -> int:
    from . import rootless
    data = rootless.run(args.rounds)
    path = rootless.save(data)
    rootless.write_document(data)
    print(rootless.as_text(data))
    print(f"\n{path.relative_to(TOP)} and {rootless.DOCUMENT.relative_to(TOP)}")
    return 0


def bridged_volumes(args: argparse.Namespace) -> int:
    from . import bridge
    kinds = tuple(args.storage.split(",")) if args.storage else bridge.STORAGE
    if set(kinds) - set(bridge.STORAGE):
        raise Failure(f"--storage {args.storage}: there are {', '.join(bridge.STORAGE)}, separated by commas")
    data = bridge.run(kinds, args.rounds)
    path = bridge.save(data)
    written = not args.no_page and set(kinds) == set(bridge.STORAGE)
    if written:
        bridge.write_document(data)
    print(bridge.as_text(data))
    for line in bridge.misses(data):
        print(f"not reached: {line}")
    print(f"\n{path.relative_to(TOP)}" + (f" and {bridge.PAGE.relative_to(TOP)}" if written else ""))
    return 0


def ask_containers(args: argparse.Namespace) -> int:
    from . import probes
    data = probes.run(tuple(args.runtime.split(",")), args.turns, args.kernel)
    path = probes.save(data)
    print(probes.as_text(data))
    print(f"\n{path.relative_to(TOP)}")
    return 0


def compare(args: argparse.Namespace) -> int:
    """Whether the newest run and the one before it with the same plan agree in their ratios."""
    from . import figures, report
    data = report.newest()
    other = report.comparable(data)
    if other is None:
        raise Failure("two runs with the same plan are needed; `tools/dev bench cri` makes one")
    first, second = figures.ratios(other), figures.ratios(data)
    apart = figures.disagreements(first, second, LIMIT)
    for line in apart:
        print(line)
    print(f"{len(first.keys() & second.keys())} ratios, {len(apart)} more than {LIMIT:.0%} apart")
    return 1 if apart else 0


def write_report(args: argparse.Namespace) -> int:
    from . import report
    report.write()
    print(f"{report.DOCUMENT.relative_to(TOP)} and its pictures")
    return 0


def draw_pictures(args: argparse.Namespace) -> int:
    from . import pictures
    for path in pictures.write():
        print(path.relative_to(TOP))
    return 0


ACTIONS = {"cri": cri, "growth": fill_node, "probes": ask_containers, "images": pull_images, "layers": many_layers, "large": many_layers,
           "guard": guard_reviews, "bridge": bridged_volumes,
           "floor": version_floor, "rootless": rootless_nodes, "compare": compare, "report": write_report, "pictures": draw_pictures}
PURPOSES = {
    "cri": "start and end of pods, memory and restart, beside the bare engine, in a guest: 10 minutes",
    "growth": "one more pod, memory, restart and lists on a node with 1 to 2,000 pods, natively: 20 minutes",
    "probes": "commands in, and statistics of, 200 running containers, in a guest",
    "images": "pull of a large image, natively",
    "layers": "100 pods of an image with 50 small layers, natively",
    "large": "pull and first start of an image of 10 GB in 60 layers, natively; needs 50 GB of disk",
    "guard": "admission reviews; writes docs/guard-benchmarks.md",
    "floor": "the authorizer, and admission that asks an API server; writes docs/floor-benchmarks.md",
    "bridge": "volumes behind nodens-bridge, bare and with bindfs, natively and on NFS in a guest; writes the tables of docs/bridge.md",
    "rootless": "networks and ports of rootless nodes; writes docs/benchmarks-rootless.md",
    "compare": "whether the two newest runs of cri agree",
    "report": "write docs/benchmarks.md from the newest runs of cri, growth, probes, images, layers and large",
    "pictures": "draw the pictures of docs/ from the tables of its pages",
}
assert PURPOSES.keys() == ACTIONS.keys()


def options(parser: argparse.ArgumentParser) -> None:
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = "\n".join(["benchmarks:", *(f"  {name:<9} {purpose}" for name, purpose in PURPOSES.items())])
    parser.add_argument("action", metavar="BENCHMARK", type=one_of("benchmark", ACTIONS), help="which one, of those below")
    parser.add_argument("--runtime", default=",".join(RUNTIMES), metavar="NAMES",
                        help=f"cri, probes: runtimes, separated by commas (default: {','.join(RUNTIMES)}; cri also has cri-o)")
    parser.add_argument("--rounds", type=int, default=3,
                        help="cri, growth, layers, large: how often everything is measured; images: pulls by each runtime; rootless, "
                             "bridge: turns of each way (default: 3)")
    parser.add_argument("--turns", type=int, default=40, help="probes: how often each is asked (default: 40)")
    parser.add_argument("--pods", type=int, help="cri: per round (default: 20); layers: at once (default: 100)")
    parser.add_argument("--layers", type=int, help="layers, large: of the image (default: 50 and 60)")
    parser.add_argument("--gigabytes", type=int, default=10, help="large: size of the unpacked image (default: 10)")
    parser.add_argument("--parallel", type=int, default=5, help="cri: pods at a time in the parallel part (default: 5)")
    parser.add_argument("--userns", choices=("on", "off", "both"), default="both",
                        help="cri: pods with a user namespace, without, or both (default: both)")
    parser.add_argument("--kernel", choices=("uml", "debian"), default="uml", help="cri, probes: of the guest (default: uml)")
    parser.add_argument("--seconds", type=int, default=8, help="guard, floor: of each load (default: 8)")
    parser.add_argument("--kyverno", action="store_true", help="guard: beside Kyverno as well, which takes long to build the first time")
    parser.add_argument("--no-page", action="store_true", help="guard, floor, bridge: leave the page in docs/ as it is")
    parser.add_argument("--storage", metavar="KINDS",
                        help="bridge: ext4, tmpfs and nfs4, separated by commas; the page is written after a run of all (default)")


def run(args: argparse.Namespace) -> int:
    return ACTIONS[args.action](args)


COMMANDS = [Command("bench", "measure time and memory, beside other programs; draw and write the pages of docs/", run, options)]
