"""Takes pictures of the console's pages. `tools/screenshots` runs it."""

import json
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka import Producer
from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service

ROOT = Path(__file__).resolve().parent.parent
IMAGES = ROOT / "docs" / "images"
TIDELOG = [sys.executable, "-m", "tidelog.cli.main"]
PATIENCE_SECONDS = 60.0


@contextmanager
def browser() -> Iterator[webdriver.Chrome]:
    options = Options()
    for one in ("headless=new", "no-sandbox", "disable-gpu", "window-size=1280,860"):
        options.add_argument(f"--{one}")
    options.binary_location = "/usr/bin/chromium"
    driver = webdriver.Chrome(options=options, service=Service("/usr/bin/chromedriver"))
    try:
        yield driver
    finally:
        driver.quit()


def run(*arguments: str) -> None:
    subprocess.run([*TIDELOG, *arguments], check=True, stdout=subprocess.DEVNULL)


def await_true(look: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not look():
        if time.monotonic() > deadline:
            sys.exit(f"screenshots: {what} was not seen in time.")
        time.sleep(0.1)


def write(bootstrap: str, count: int) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "log_level": 0})
    for number in range(count):
        value = f'{{"order": {number}, "item": "cup", "price": {3 + number % 7}.50}}'
        producer.produce("orders", value, key=f"customer-{number % 40}")
    if producer.flush(PATIENCE_SECONDS):
        sys.exit("screenshots: not all records were acknowledged.")


def take(driver: webdriver.Chrome, address: str, path: str, wanted: str, name: str) -> None:
    driver.get("about:blank")
    driver.get(f"{address}/#/{path}")
    await_true(lambda: wanted in driver.find_element("tag name", "body").text, wanted)
    time.sleep(2.5)  # a few live updates, so that plots have a line
    driver.save_screenshot(str(IMAGES / f"console-{name}.png"))
    print(f"docs/images/console-{name}.png", flush=True)


def leader_of_first(address: str) -> str:
    with urllib.request.urlopen(f"{address}/api/view?name=partition:orders:0") as answer:
        return str(json.loads(answer.read())["leader"])


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        up = subprocess.Popen(
            [*TIDELOG, "up", "--dir", f"{directory}/data", "--port", "19392"],
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            assert up.stdout is not None
            bootstrap, address = (up.stdout.readline().split()[1] for _ in range(2))
            pictures(bootstrap, address, f"{directory}/data")
        finally:
            up.terminate()
            up.wait()


def pictures(bootstrap: str, address: str, directory: str) -> None:
    create = ("topics", "--create", "--topic", "orders", "--partitions", "3")
    run(
        *create,
        "--replication-factor",
        "3",
        "--config",
        "min.insync.replicas=2",
        "--bootstrap-server",
        bootstrap,
    )
    write(bootstrap, 4_000)
    with browser() as driver:
        take(driver, address, "", "Healthy", "cluster")
        take(driver, address, "records/orders/0", "customer-", "records")
        leader = leader_of_first(address)
        run("node", "kill", leader, "--dir", directory)
        write(bootstrap, 1_500)
        take(driver, address, "topics/orders/0", "left the in-sync set", "partition")
        run("node", "start", leader, "--dir", directory)
        take(driver, address, "rewind/orders/0", "was fenced", "rewind")


if __name__ == "__main__":
    main()
