"""The console in a real browser, beside `tidelog up` and beside Apache Kafka."""

import json
import re
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from tests.clients.schema import Schemas
from tests.clients.systems import ApacheKafka, free_block
from tests.cluster.browser import Browser
from tests.cluster.foreground import TIDELOG, Up, await_seen, tidelog

NASTY = '<img src=x onerror="document.title=1">'


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    made = Browser()
    yield made
    made.close()


@contextmanager
def console(bootstrap: str, *options: str) -> Iterator[str]:
    """A console of its own; gives its address."""
    argv = [*TIDELOG, "console", "--bootstrap-server", bootstrap, "--port", "18100", *options]
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        found = re.fullmatch(r"console (http://\S+)\n", line)
        assert found is not None, line
        yield found[1]
    finally:
        process.terminate()
        process.wait()


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    block = free_block()
    running = Up(tmp_path_factory.mktemp("console") / "data", block.first, brokers=3)
    try:
        yield running.bootstrap()
    finally:
        running.end()
        block.release()


def write(bootstrap: str, topic: str, values: list[bytes]) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "log_level": 0})
    for number, value in enumerate(values):
        producer.produce(topic, value, key=f"k{number}", partition=0)
    assert producer.flush(60) == 0


def test_a_leader_is_killed_by_the_button_and_the_pages_show_the_failover(
    up: str, browser: Browser
) -> None:
    create = ("topics", "--create", "--topic", "orders", "--partitions", "1")
    tidelog(
        *create,
        "--replication-factor",
        "3",
        "--config",
        "min.insync.replicas=2",
        "--bootstrap-server",
        up,
    )
    write(up, "orders", [b"%d" % number for number in range(20)])
    with console(up) as address:
        browser.open(f"{address}/#/topics/orders/0")
        browser.await_text("LEO 20")
        browser.await_count(".lane.insync", 3)
        leader = re.search(r"leader (\d)", browser.text(".head"))
        assert leader is not None

        browser.open(f"{address}/#/")
        browser.await_text("Healthy: any one broker can be lost.", "#verdict")
        browser.button("kill", f"[data-broker='{leader[1]}']").click()
        browser.button("kill", "dialog").click()
        browser.await_text("One more loss stops writes to", "#verdict")
        browser.await_text("down", f"[data-broker='{leader[1]}']")

        browser.open(f"{address}/#/topics/orders/0")
        browser.await_text(f"Broker {leader[1]} left the in-sync set", "#explanation")
        browser.await_count(".lane.insync", 2)
        assert re.search(rf"leader (?!{leader[1]})\d", browser.text(".head"))
        write(up, "orders", [b"after"])
        browser.await_text("LEO 21")

        browser.open(f"{address}/#/")
        browser.await_text("down", f"[data-broker='{leader[1]}']")
        browser.button("start", f"[data-broker='{leader[1]}']").click()
        browser.button("start", "dialog").click()
        browser.await_text("Healthy: any one broker can be lost.", "#verdict")

        browser.open(f"{address}/#/rewind/orders/0")
        browser.await_text(f"Broker {leader[1]} was fenced", "#events")
        fenced = "[data-at].broker_fenced"
        browser.driver.find_elements("css selector", fenced)[-1].click()
        browser.await_count(".lane.insync", 2)
        browser.await_text("orders-0 is under-replicated", "#explanation")
        browser.driver.find_elements("css selector", "[data-at].leader_elected")[0].click()
        browser.await_count(".lane.insync", 3)
        browser.await_text(f"broker {leader[1]} leads", "#explanation")
        assert browser.complaints() == []
        assert browser.hosts() == {address.removeprefix("http://")}


def test_topics_records_and_settings_are_changed_in_the_browser(up: str, browser: Browser) -> None:
    with console(up) as address:
        browser.open(f"{address}/#/")
        browser.await_text("Create topic")
        browser.button("Create topic").click()
        browser.fill("topic", "made-here")
        browser.fill("partitions", "2")
        browser.button("Create topic", "dialog").click()
        browser.await_text("made-here", "main")

        browser.open(f"{address}/#/records/made-here/0")
        browser.await_text("No records here.")
        browser.button("Produce").click()
        browser.fill("key", "first")
        browser.fill("value", NASTY)
        browser.button("Produce a record", "dialog").click()
        browser.await_text(NASTY, "#records")
        assert browser.driver.title == "Tidelog console", "the record was taken for markup"
        browser.fill("text", "onerror")
        browser.button("Search").click()
        browser.await_text("1 records read, 1 found")

        browser.open(f"{address}/#/topics/made-here")
        browser.await_text("retention.ms")
        browser.driver.find_element("css selector", "[aria-label='Change retention.ms']").click()
        browser.fill("value", "never")
        browser.button("Change", "dialog").click()
        browser.await_text("retention.ms", "dialog .error")
        browser.fill("value", "3600000")
        browser.button("Change", "dialog").click()
        browser.await_text("3600000", "main")
        assert browser.complaints() != [], "the refused value is a failed request"
        browser.await_text("dynamic topic config", "main")
        resets = browser.driver.find_elements("css selector", "[aria-label^='Reset to default']")
        assert [one.get_attribute("aria-label") for one in resets] == [
            "Reset to default retention.ms"  # not min.insync.replicas, which a broker sets
        ]


def test_offsets_of_a_group_are_reset_after_a_preview(up: str, browser: Browser) -> None:
    tidelog("topics", "--create", "--topic", "read", "--partitions", "1", "--bootstrap-server", up)
    write(up, "read", [b"%d" % number for number in range(10)])
    consumer = Consumer({"bootstrap.servers": up, "group.id": "readers", "log_level": 0})
    consumer.commit(offsets=[TopicPartition("read", 0, 10)], asynchronous=False)
    consumer.close()
    with console(up) as address:
        browser.open(f"{address}/#/groups")
        browser.await_text("readers")
        browser.open(f"{address}/#/groups/readers")
        browser.await_text("Lag 0")
        browser.button("Reset offsets").click()
        browser.fill("to", "4")
        browser.button("Preview", "dialog").click()
        browser.await_text("10 4", "dialog table")
        browser.button("Apply", "dialog").click()
        browser.await_text("Lag 6")


def test_nasty_names_and_long_values_are_shown_as_text(up: str, browser: Browser) -> None:
    tidelog(
        "topics",
        "--create",
        "--topic",
        "a.b_c-9",
        "--partitions",
        "1",
        "--config",
        "max.message.bytes=12000000",
        "--bootstrap-server",
        up,
    )
    producer = Producer({"bootstrap.servers": up, "message.max.bytes": 12_000_000, "log_level": 0})
    producer.produce("a.b_c-9", b"x" * 10_000_000, key=bytes(range(256)))
    producer.produce("a.b_c-9", None, key="\x00\x1b[31m\u202e", headers={"</td>": b"\xff"})
    assert producer.flush(60) == 0
    with console(up) as address:
        browser.open(f"{address}/#/records/a.b_c-9/0")
        browser.await_text("10,000,000 B")
        browser.await_text("null", "#records")
        browser.await_text("</td>: ff", "#records")
        where = "topic=a.b_c-9&partition=0&offset=0"
        with urllib.request.urlopen(f"{address}/api/value?{where}") as answer:
            assert answer.read() == b"x" * 10_000_000
            assert "attachment" in answer.headers["content-disposition"]


BAD_REQUESTS = {
    "view?name=topic:nope": "UNKNOWN_TOPIC_OR_PARTITION",
    "view?name=partition:nope:0": "Topic 'nope' does not exist.",
    "view?name=nonsense": "there is no page 'nonsense'.",
    "records?topic=nope&partition=0": "Topic 'nope' does not exist.",
    "records?topic=nope&partition=x": "a number in the request is not a number.",
    "search?topic=nope&text=": "'text' is missing.",
    "view?name=group:": "there is no page 'group:'.",
}


def test_bad_requests_get_a_sentence(up: str) -> None:
    with console(up) as address:
        for path, sentence in BAD_REQUESTS.items():
            with pytest.raises(urllib.error.HTTPError) as refused:
                urllib.request.urlopen(f"{address}/api/{path}")

            assert refused.value.code == 400
            assert json.loads(refused.value.read()) == {"sentence": sentence}, path


def test_up_serves_a_console_that_ends_with_it(tmp_path: Path) -> None:
    block = free_block()
    running = Up(tmp_path / "data", block.first, console=True)
    try:
        running.bootstrap()
        assert running.process.stdout is not None
        word, address = running.process.stdout.readline().split()
        assert word == "console"
        answered = await_seen(lambda: about(address), lambda seen: seen is not None)
        assert answered == {
            "bootstrap": f"127.0.0.1:{block.first}",
            "read_only": False,
            "is_local": True,
        }
    finally:
        assert running.end() == 0
        block.release()
    assert about(address) is None


def about(address: str) -> dict[str, object] | None:
    """What the console at this address tells about itself; None if it does not answer."""
    try:
        with urllib.request.urlopen(f"{address}/api/about") as answer:
            found: dict[str, object] = json.loads(answer.read())
    except urllib.error.URLError:
        return None
    return found


def test_a_cluster_that_dies_is_reported_and_found_again(browser: Browser, tmp_path: Path) -> None:
    block = free_block()
    first = Up(tmp_path / "data", block.first)
    bootstrap = first.bootstrap()
    with console(bootstrap) as address:
        browser.open(f"{address}/#/")
        browser.await_text("broker 1")
        first.end()
        browser.await_text("no broker can be reached", "#trouble")
        second = Up(tmp_path / "data", first.port)
        try:
            second.bootstrap()
            browser.await_true(lambda: browser.text("#trouble"), lambda seen: seen == "")
        finally:
            second.end()
            block.release()


def test_the_same_pages_work_on_apache_kafka(
    schemas: Schemas, browser: Browser, tmp_path: Path
) -> None:
    broker = ApacheKafka(tmp_path, schemas)
    broker.format()
    broker.start()
    try:
        create = ("topics", "--create", "--topic", "orders", "--partitions", "1")
        tidelog(*create, "--bootstrap-server", broker.bootstrap)
        write(broker.bootstrap, "orders", [b"one", b"two"])
        with console(broker.bootstrap, "--read-only") as address:
            browser.open(f"{address}/#/")
            browser.await_text("Healthy, but", "#verdict")
            assert browser.count(".broker button") == 0
            browser.open(f"{address}/#/topics/orders/0")
            browser.await_text("LEO 2")
            browser.await_text("orders-0 is healthy", "#explanation")
            browser.open(f"{address}/#/records/orders/0")
            browser.await_text("two", "#records")
            browser.open(f"{address}/#/topics/orders")
            browser.await_text("retention.ms")
    finally:
        broker.stop()
