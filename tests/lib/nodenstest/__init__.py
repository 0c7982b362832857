# SPDX-License-Identifier: Apache-2.0
"""Shared by the suites of tests/: runtimes and registries to test with, helpers for images and pods, clients of the streaming server.

pyproject.toml puts this package and tools/nodensdev on pytest's path, tools/nodensdev/env/chroot.py on that of programs in the chroot.
"""
