# SPDX-License-Identifier: Apache-2.0
"""Where commands run: the cache, Debian roots, chroots, guests, and the programs built for them."""
