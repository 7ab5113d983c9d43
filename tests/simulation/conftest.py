"""The figures of all simulated runs, shown at the end."""

from collections import Counter

import pytest

from tests.simulation.campaign import PROPERTY


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Add up what the campaigns have recorded, in whatever process they ran."""
    figures: Counter[str] = Counter()
    for report in terminalreporter.getreports("passed"):
        for name, value in getattr(report, "user_properties", ()):
            if name.startswith(PROPERTY):
                figures[name.removeprefix(PROPERTY)] += int(value)
    if figures:
        words = ", ".join(f"{value:,} {name}" for name, value in figures.items())
        terminalreporter.write_line(f"Simulated: {words}.")
