# SPDX-License-Identifier: Apache-2.0
"""Where commands run: the cache, Debian roots and chroots, guests with a kernel of their own, and the programs that are built for them."""
