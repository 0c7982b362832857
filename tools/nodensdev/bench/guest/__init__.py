# SPDX-License-Identifier: Apache-2.0
"""The part of the bench that runs inside a guest."""
