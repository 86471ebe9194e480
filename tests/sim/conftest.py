"""Every simulated test that takes a seed is run with several; `--seeds 200` looks harder."""

import pytest


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "seed" in metafunc.fixturenames:
        metafunc.parametrize("seed", range(metafunc.config.getoption("--seeds")))
