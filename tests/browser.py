"""A headless Chromium driven over its debugging pipe."""

import base64
import json
import os
import select
import shutil
import subprocess
import time
from pathlib import Path

import pytest

CHROMIUM = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
)


class Browser:
    """One page; ``errors`` collects exceptions, console errors and refused or attempted requests."""

    def __init__(self, profile, width=1280, height=900):
        to_read, self._write = os.pipe()
        self._read, to_write = os.pipe()

        def hand_over():  # the browser reads commands from file 3 and writes answers to file 4
            os.dup2(to_read, 103)
            os.dup2(to_write, 104)
            os.dup2(103, 3)
            os.dup2(104, 4)
            for number in (3, 4):
                os.set_inheritable(number, True)

        flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--remote-debugging-pipe"]
        size = [f"--window-size={width},{height}", f"--user-data-dir={profile}"]
        quiet = ["--disable-background-networking", "--disable-component-update", "--disable-extensions"]
        self._process = subprocess.Popen(
            [CHROMIUM, *flags, *size, *quiet, "about:blank"],
            preexec_fn=hand_over,
            close_fds=False,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_read)
        os.close(to_write)
        self._buffer, self._number, self.errors, self.requests = b"", 0, [], []
        target = self._call("Target.createTarget", {"url": "about:blank"}, session=False)["targetId"]
        attached = self._call("Target.attachToTarget", {"targetId": target, "flatten": True}, session=False)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self._call(f"{domain}.enable")

    def open(self, page):
        """A file, or an address as text."""
        self._call("Page.navigate", {"url": page if isinstance(page, str) else page.absolute().as_uri()})
        self.until("document.readyState === 'complete'")

    def value(self, expression):
        reply = self._call("Runtime.evaluate", {"expression": expression, "returnByValue": True, "awaitPromise": True})
        if "exceptionDetails" in reply:
            raise AssertionError(f"{expression}: {reply['exceptionDetails']}")
        return reply["result"].get("value")

    def until(self, expression, seconds=200):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self.value(expression):
                return
            time.sleep(0.05)
        raise AssertionError(f"never true: {expression}; {self.errors}")

    def move_mouse(self, x, y):
        self._call("Input.dispatchMouseEvent", {"type": "mouseMoved", "x": x, "y": y})

    def click(self, x, y):
        self.move_mouse(x, y)
        for kind in ("mousePressed", "mouseReleased"):
            at = {"type": kind, "x": x, "y": y, "button": "left", "clickCount": 1}
            self._call("Input.dispatchMouseEvent", at)

    def press(self, key):
        number, text = {"Tab": (9, ""), "Enter": (13, "\r"), " ": (32, " ")}.get(key, (0, ""))
        event = {"key": key, "code": {" ": "Space"}.get(key, key)} | (
            {"windowsVirtualKeyCode": number} if number else {}
        )
        self._call("Input.dispatchKeyEvent", {"type": "keyDown", **event} | ({"text": text} if text else {}))
        self._call("Input.dispatchKeyEvent", {"type": "keyUp", **event})

    def look(self, *, width=1280, height=900, dark=False):
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self._call("Emulation.setDeviceMetricsOverride", metrics)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._call("Emulation.setEmulatedMedia", {"features": [scheme]})
        # the page redraws 80 ms after a resize: by its own clock, however late that is
        frame = "await new Promise(requestAnimationFrame);"
        self.value(f"(async () => {{ {frame} {frame} await new Promise(r => setTimeout(r, 160)); {frame} }})()")

    def serious(self):
        """What axe-core calls serious or critical on the page as it is."""
        axe_core = pytest.importorskip("axe_core_python", reason="axe-core-python ships the script of axe-core")
        self.value((Path(axe_core.__file__).parent / "axe.min.js").read_text() + ";0")
        violations = self.value("axe.run(document, {resultTypes: ['violations']}).then(result => result.violations)")
        return [
            (violation["id"], node["html"], node["failureSummary"])
            for violation in violations
            if violation["impact"] in ("serious", "critical")
            for node in violation["nodes"]
        ]

    def seconds(self):
        """Of processor that the page has used."""
        self._call("Performance.enable")
        metrics = {metric["name"]: metric["value"] for metric in self._call("Performance.getMetrics")["metrics"]}
        return metrics["ProcessTime"]

    def picture(self, path, *, whole=False):
        reply = self._call("Page.captureScreenshot", {"format": "png", "captureBeyondViewport": whole})
        path.write_bytes(base64.b64decode(reply["data"]))

    def close(self):
        try:
            self._call("Browser.close", session=False)
            self._process.wait(60)
        except (AssertionError, OSError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait(60)
        os.close(self._write)
        os.close(self._read)

    def _call(self, method, params=None, *, session=True):
        self._number += 1
        message = {"id": self._number, "method": method, "params": params or {}}
        if session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            reply = self._next()
            if reply.get("id") == self._number:
                assert "error" not in reply, f"{method}: {reply['error']}"
                return reply["result"]
            self._note(reply)

    def _note(self, reply):
        params = reply.get("params", {})
        if reply.get("method") == "Runtime.exceptionThrown":
            self.errors.append(params["exceptionDetails"].get("exception", {}).get("description", "exception"))
        elif reply.get("method") == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning"):
            self.errors.append(str(params["args"]))
        elif reply.get("method") == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.errors.append(params["entry"]["text"])
        elif reply.get("method") == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])

    def _next(self):
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._read], [], [], 200)
            assert ready, "the browser does not answer"
            read = os.read(self._read, 1 << 20)
            assert read, "the browser is gone"
            self._buffer += read
        one, self._buffer = self._buffer.split(b"\0", 1)
        return json.loads(one)
