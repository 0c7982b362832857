# SPDX-License-Identifier: Apache-2.0
"""What the suites of tests/ share: runtimes and registries to test with, images and pods in few words, clients of the streaming server.

pyproject.toml puts this package and tools/nodensdev on pytest's path, tools/nodensdev/env/chroot.py on that of programs in the chroot.
"""
