# SPDX-License-Identifier: Apache-2.0
"""What all suites share. pyproject.toml puts tools/ and tests/lib on their path."""
import pytest


def pytest_configure(config: pytest.Config) -> None:
    """Tests with the mark `nightly` are random or measure time: they run only where -m names the mark."""
    config.addinivalue_line("markers", "nightly: bounds on speed, which a loaded machine breaks; left out unless -m names it")
    if "nightly" not in config.option.markexpr:
        config.option.markexpr = f"({config.option.markexpr}) and not nightly" if config.option.markexpr else "not nightly"
