# SPDX-License-Identifier: Apache-2.0
"""What `tools/dev` is made of: one module per noun, each with its own commands (see main.py for the table)."""
