# SPDX-License-Identifier: Apache-2.0
"""What `tools/dev` is made of: one module per noun, each with its own commands (see main.py for the table). env/ is where
commands run, checks/ what is checked; cluster/, e2e/, bench/, images/ and registry/ are nouns of several modules."""
