"""`pip install .` gives a command and a pytest plugin that work outside of a checkout."""

import os
import subprocess
import sysconfig
import venv
from pathlib import Path

ROOT = Path(__file__).parents[2]
USES_THE_FIXTURE = """
def test_it(tidelog_cluster):
    tidelog_cluster.create_topic("orders", partitions=1, replication_factor=1)
    assert tidelog_cluster.leader_of("orders") == 1
"""


def run(*command: str | Path, cwd: Path) -> str:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_an_installed_package_has_the_command_and_the_fixtures(tmp_path: Path) -> None:
    environment = tmp_path / "environment"
    venv.create(environment, with_pip=True)
    programs = environment / "bin"
    site_packages = next(environment.glob("lib/python*/site-packages"))
    # The new environment uses the dependencies of this environment, but not its src/.
    (site_packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")

    run(programs / "pip", "install", "--no-deps", ".", cwd=ROOT)

    assert run(programs / "tidelog", "--version", cwd=tmp_path).startswith("tidelog ")
    (tmp_path / "test_it.py").write_text(USES_THE_FIXTURE)
    options = ("-p", "no:cacheprovider", "--tidelog-brokers", "1", "-q")
    assert "1 passed" in run(
        programs / "python", "-m", "pytest", *options, "test_it.py", cwd=tmp_path
    )
    assert str(environment) in run(
        programs / "python", "-c", "import tidelog; print(tidelog.__file__)", cwd=tmp_path
    )
