# SPDX-License-Identifier: Apache-2.0
"""Programs in Go that the testbed needs: Kubernetes, its test suite, containerd and a registry.

    kubelet = goprograms.ensure("kubernetes") / "kubelet"

Each set is built from a module under tests/peers/, whose go.mod and go.sum pin everything, and kept in the cache under
a hash of those two files, the recipe below and the version of Go. Go's own build cache is the user's, so a second module over the
same sources (an oracle that imports the kubelet's packages) compiles little.
"""
import argparse
import functools
import json
import os
import re
import shutil
import subprocess
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..command import Command, Failure
from ..project import TESTS
from . import cache, machine

MODULES = TESTS / "peers"
NICENESS = 5
STRIP = "-s -w"
LAZY = "-extldflags=-Wl,-z,lazy"


@dataclass(frozen=True)
class Recipe:
    """What is built from a module: programs (import path -> name), and at most one test program."""

    module: str
    programs: dict[str, str]
    test: tuple[str, str] | None = None     # (import path, name) for `go test -c`
    version_of: str | None = None           # the required module whose version the programs report
    stamps: tuple[str, ...] = ()            # the variables that it goes into
    cgo: bool = field(default=False, repr=False)             # loads a C library at run time, whose symbols are unresolved until then
    static_cgo: bool = field(default=False, repr=False)      # has parts in C, and is linked statically as all the rest
    version: str | None = field(default=None, repr=False)    # a version to report instead
    tags: tuple[str, ...] = field(default=(), repr=False)     # Go's build tags
    c_library: str = field(default="", repr=False)            # pkg-config's name of a library that is linked, statically as all the rest
    c_package: str = field(default="", repr=False)            # the Debian package with it
    c_program: tuple[str, str] | None = field(default=None, repr=False)    # (name, directory in the sources of version_of): a program in C

    def text(self) -> str:
        """What the key of the cache depends on."""
        linked = repr((self.tags, self.c_library, self.c_program)) if self.tags or self.c_library or self.c_program else ""
        return repr(self) + (f" as {self.version}" if self.version else "") + (f" with cgo {LAZY}" if self.cgo else "") \
            + (" with static cgo" if self.static_cgo else "") + linked


def recipes() -> dict[str, Recipe]:
    """The sets, from tests/peers/binaries.toml."""
    with open(MODULES / "binaries.toml", "rb") as file:
        table = tomllib.load(file)
    return {name: recipe_from(fields) for name, fields in table.items()}


def recipe_from(fields: dict[str, Any]) -> Recipe:
    known = dict(fields)
    paths = known.pop("programs", [])
    test = known.pop("test", None)
    stamps = tuple(known.pop("stamps", ()))
    programs = {path: path.rsplit("/", 1)[1] for path in paths}
    c_program = known.pop("c_program", None)
    return Recipe(programs=programs, test=(test["path"], test["name"]) if test else None, stamps=stamps, tags=tuple(known.pop("tags", ())),
                  c_program=(c_program["name"], c_program["source"]) if c_program else None, **known)


@functools.cache
def go_version() -> str:
    """Go's own answer; the newest `go` on the machine is the one that is used."""
    machine.need_program("go", "golang-go")
    done = subprocess.run(["go", "env", "GOVERSION"], env=environment(), capture_output=True, text=True, cwd="/")
    if done.returncode != 0:
        raise Failure(f"`go env GOVERSION` failed: {done.stderr.strip()}")
    return done.stdout.strip()


def environment(cgo: bool = False) -> dict[str, str]:
    """Static binaries run on the machine, in the Debian roots and in the guests alike."""
    if cgo:
        machine.need_program("gcc", "gcc")
    return machine.go_environment() | {"CGO_ENABLED": "1" if cgo else "0", "GOOS": "linux", "GOWORK": "off"}


def own_sources(recipe: Recipe) -> list[Path]:
    """The files of a module that is a program of ours; the others only have a tools.go, which nothing compiles."""
    source = MODULES / recipe.module
    return sorted(path for path in (*source.glob("*.go"), *source.glob("*.s")) if path.name != "tools.go")


def key(name: str) -> str:
    recipe = recipe_of(name)
    source = MODULES / recipe.module
    own = [path.read_bytes() for path in own_sources(recipe)]
    pins = [(source / item).read_bytes() for item in ("go.mod", "go.sum")]
    return cache.key_of(go_version(), recipe.text(), STRIP, *pins, *own)


def recipe_of(name: str) -> Recipe:
    known = recipes()
    if name not in known:
        raise Failure(f"no set of Go programs '{name}' (there are: {', '.join(known)})")
    return known[name]


def ensure(name: str) -> Path:
    """The directory of a set's programs; built when its pins are new."""
    return cache.ensure("go", name, key(name), lambda path: make(name, path))


def make(name: str, path: Path) -> None:
    recipe = recipe_of(name)
    machine.say(f"building the Go programs '{name}': {', '.join(built_names(recipe))} (minutes, the first time)")
    with cache.scratch("go") as work:
        source = MODULES / recipe.module
        for item in (source / "go.mod", source / "go.sum", *source.glob("tools.go"), *own_sources(recipe)):
            shutil.copy(item, work)
        flags = ["-mod=readonly", f"-ldflags={link_flags(recipe, work)}", *([f"-tags={','.join(recipe.tags)}"] if recipe.tags else [])]
        if recipe.c_library:
            need_c_library(recipe)
        if recipe.programs:
            go(["build", *flags, "-o", f"{path}/", *recipe.programs], work, recipe.cgo or recipe.static_cgo or bool(recipe.c_library))
        if recipe.test:
            import_path, program = recipe.test
            go(["test", "-c", "-vet=off", *flags, "-o", str(path / program), import_path], work)
    if recipe.c_program:
        make_c_program(name, recipe, path)
    for program in built_names(recipe):
        if not os.access(path / program, os.X_OK):
            raise Failure(f"building '{name}' gave no program '{program}'")


def need_c_library(recipe: Recipe) -> None:
    """Makes sure that a library for cgo is there; as root on Debian it is installed."""
    for program, package in (("gcc", "gcc"), ("pkg-config", "pkg-config")):
        machine.need_program(program, package)
    if subprocess.run(["pkg-config", "--exists", recipe.c_library]).returncode != 0:
        machine.install(recipe.c_package, f"the library {recipe.c_library} is missing")


def make_c_program(name: str, recipe: Recipe, path: Path) -> None:
    """Compiles the program that a project has beside its Go programs."""
    assert recipe.c_program and recipe.version_of
    program, directory = recipe.c_program
    files = sorted(map(str, (source_directory(name, recipe.version_of) / directory).glob("*.c")))
    done = subprocess.run(["gcc", "-std=c99", "-Os", "-static", "-s", "-o", str(path / program), *files], capture_output=True, text=True)
    if done.returncode != 0:
        raise Failure(f"cannot compile {program} of '{name}' (Debian packages gcc and libc6-dev):\n{done.stderr[-2000:]}")


def built_names(recipe: Recipe) -> list[str]:
    return [*recipe.programs.values(), *([recipe.test[1]] if recipe.test else []), *([recipe.c_program[0]] if recipe.c_program else [])]


def link_flags(recipe: Recipe, work: Path) -> str:
    version = recipe.version
    if not version and recipe.version_of:
        version = go(["list", "-m", "-f", "{{.Version}}", recipe.version_of], work).strip()
    linking = [LAZY] if recipe.cgo else ["-linkmode external -extldflags -static"] if recipe.c_library or recipe.static_cgo else []
    return " ".join([STRIP, *linking, *(f"-X {variable}={version}" for variable in recipe.stamps if version)])


def go(arguments: list[str], work: Path, cgo: bool = False) -> str:
    """Runs `go` politely in a module's directory and returns what it printed."""
    done = subprocess.run(["nice", "-n", str(NICENESS), "go", *arguments], cwd=work, env=environment(cgo),
                          stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode != 0:
        raise Failure(f"`go {' '.join(arguments[:2])} ...` failed:\n{done.stderr[-4000:]}")
    return done.stdout


def pinned_version(name: str, module: str) -> str:
    """The version of a module that a set is built from."""
    pattern = rf"^\s*(?:require\s+)?{re.escape(module)} (\S+)"
    found = re.search(pattern, (MODULES / recipe_of(name).module / "go.mod").read_text(), re.MULTILINE)
    if not found:
        raise Failure(f"{module} is not in the go.mod of '{name}'")
    return found[1]


def source_directory(name: str, module: str) -> Path:
    """Where the sources of a required module are, for files that are not programs (manifests, fixtures)."""
    with cache.scratch("go") as work:
        for item in ("go.mod", "go.sum"):
            shutil.copy(MODULES / recipe_of(name).module / item, work / item)
        found = go(["mod", "download", "-json", module], work)
    return Path(json.loads(found)["Dir"])


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", nargs="*", help=f"which sets; default: all ({', '.join(recipes())})")


def run(args: argparse.Namespace) -> int:
    for name in args.name or recipes():
        print(f"{name}: {ensure(name)}")
    return 0


COMMANDS = [Command("gobin", "build stock Kubernetes, its suites, containerd and a registry; say where they are", run, options)]
