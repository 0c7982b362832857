# SPDX-License-Identifier: Apache-2.0
from nodensdev.env import machine

DEB822 = """\
Types: deb
# a comment in between
URIs: http://mirror.example/debian
Suites: bookworm bookworm-updates
Components: main

Types: deb-src
URIs: http://mirror.example/sources
Suites: bookworm

Types: deb
Enabled: no
URIs: http://off.example/debian
Suites: bookworm
"""


def test_deb822_sources_are_read() -> None:
    assert machine.parse_deb822_sources(DEB822) == [machine.Source("http://mirror.example/debian", ("bookworm", "bookworm-updates"))]


def test_one_line_sources_are_read() -> None:
    text = ("# deb http://no.example x main\ndeb [signed-by=/a arch=amd64] http://one.example/debian trixie main\n"
            "deb-src http://two.example trixie main\n")
    assert machine.parse_one_line_sources(text) == [machine.Source("http://one.example/debian", ("trixie",))]
