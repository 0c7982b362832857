# SPDX-License-Identifier: Apache-2.0
"""The package of `tools/dev`: one module per noun, each with its own commands.

main.py has the table of commands. env/ is where commands run, checks/ what is checked; cluster/,
e2e/, bench/, images/ and registry/ are nouns of several modules.
"""
