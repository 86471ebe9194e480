"""A real browser, Debian's Chromium, that opens pages of the console."""

import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from selenium import webdriver
from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from tests.clients.systems import PATIENCE

ROOT = Path(__file__).parents[2]


class Browser:
    def __init__(self) -> None:
        subprocess.run([ROOT / "tools/test-needs", "chromium", "chromium-driver"], check=True)
        options = Options()
        for argument in (
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--window-size=1280,900",
        ):
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        options.binary_location = "/usr/bin/chromium"
        self.driver = webdriver.Chrome(options=options, service=Service("/usr/bin/chromedriver"))

    def close(self) -> None:
        self.driver.quit()

    def open(self, address: str) -> None:
        self.driver.get("about:blank")
        self.driver.get(address)

    def text(self, selector: str = "body") -> str:
        found = self.driver.find_elements(By.CSS_SELECTOR, selector)
        return " ".join(one.text for one in found)

    def await_text(self, wanted: str, selector: str = "body") -> str:
        return self.await_true(lambda: self.text(selector), lambda seen: wanted in seen)

    def count(self, selector: str) -> int:
        return len(self.driver.find_elements(By.CSS_SELECTOR, selector))

    def await_count(self, selector: str, wanted: int) -> None:
        self.await_true(lambda: str(self.count(selector)), lambda seen: seen == str(wanted))

    def await_true(self, look: Callable[[], str], is_wanted: Callable[[str], bool]) -> str:
        deadline, seen = time.monotonic() + PATIENCE, ""
        while time.monotonic() < deadline:
            try:
                seen = look()
                if is_wanted(seen):
                    return seen
            except StaleElementReferenceException:
                pass  # the page has changed meanwhile
            time.sleep(0.05)
        raise AssertionError(f"not seen in time; the page shows: {seen}\n{self.complaints()}")

    def button(self, text: str, within: str = "body") -> WebElement:
        for one in self.driver.find_elements(By.CSS_SELECTOR, f"{within} button"):
            if one.text == text and one.is_displayed():
                return one
        raise AssertionError(f"there is no button {text!r} in {self.text(within)!r}")

    def fill(self, name: str, text: str) -> None:
        field = self.driver.find_element(By.NAME, name)
        field.clear()
        field.send_keys(text)

    def complaints(self) -> list[str]:
        """What the browser has written to its console."""
        return [one["message"] for one in self.driver.get_log("browser")]

    def hosts(self) -> set[str]:
        """Every host that the pages have asked for something."""
        asked = set()
        for one in self.driver.get_log("performance"):
            message: dict[str, Any] = json.loads(one["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                address = message["params"]["request"]["url"]
                if address.startswith(("http:", "https:", "ws:")):
                    asked.add(address.split("/")[2])
        return asked
