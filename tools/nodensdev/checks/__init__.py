# SPDX-License-Identifier: Apache-2.0
"""What is checked, and how it is reported: test suites, linters, fuzzers, proofs, the gate and the nightly run."""
