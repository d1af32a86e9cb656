#!/usr/bin/env python3
"""The console at /console: how its pages are served, and in a real browser what they do. usage: console_test.py KEELSON WORK_FOLDER [NAME ...]

The browser is Debian's chromium, driven through its debugging protocol; without it those tests are left out, saying so. Scripts that need no
document are run by node where it is there.
"""
import base64
import http.client
import json
import os
import re
import shutil
import socket
import ssl
import struct
import subprocess
import sys
import time
import urllib.request

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import Client, Server, config_map, source_root  # noqa: E402

MAPS = "/api/v1/namespaces/default/configmaps"
RUNNING = []


def expect(condition, text):
    if not condition:
        raise AssertionError(text)


def started(binary, folder, flags=()):
    tokens = os.path.join(folder, "tokens.csv")
    os.makedirs(folder, exist_ok=True)
    with open(tokens, "w") as f:
        f.write('admin-token,root,1,"system:masters"\nguest-token,guest,2\n')
    server = Server(binary, folder, ["--token-auth-file=" + tokens] + list(flags))
    RUNNING.append(server)
    return server.start()


def anonymous(server, path, method="GET"):
    connection = http.client.HTTPSConnection("127.0.0.1", server.port, timeout=60, context=ssl._create_unverified_context())
    connection.request(method, path)
    answer = connection.getresponse()
    return answer, answer.read().decode()


def pages(binary, folder):
    """Everybody gets the pages, with a strict policy; nothing else becomes public with them."""
    server = started(binary, folder)
    files = os.listdir(os.path.join(source_root(), "src", "console", "files"))
    for path in ["", "/"] + ["/" + name for name in files]:
        answer, text = anonymous(server, "/console" + path)
        expect(answer.status == 200 and text, "%s: %d" % (path, answer.status))
        policy = answer.getheader("Content-Security-Policy")
        expect("default-src 'none'" in policy and "unsafe" not in policy and "frame-ancestors 'none'" in policy, policy)
        expect(answer.getheader("X-Content-Type-Options") == "nosniff", path)
        expect(not re.search(r"https?://(?!www.w3.org/2000/svg)", text), "%s names another place" % path)
        expect("innerHTML" not in text or path.endswith("dom.js"), "%s: innerHTML" % path)
    for path, method in (("/console/nothing", "GET"), ("/console/../metrics", "GET"), ("/consoles", "GET"), ("/console", "POST"), ("/metrics", "GET")):
        status = anonymous(server, path, method)[0].status
        expect(status >= 400, "%s %s: %d" % (method, path, status))
    expect("/console" not in json.dumps(Client(server).must(200, "GET", "/")), "it is listed")
    server.stop()
    server = started(binary, folder + "/off", ["--console=false"])
    expect(anonymous(server, "/console")[0].status == 403, "it cannot be switched off")
    server.stop()


NODE = """
import { toYAML, diffLines, editable } from "./yaml.js";
import { parseMetrics, requestRows } from "./server.js";
const check = (got, want) => { if (JSON.stringify(got) !== JSON.stringify(want)) { console.error(JSON.stringify(got), "instead of", JSON.stringify(want)); process.exit(1); } };
check(toYAML({ a: [1, "x: y", { b: [] }], c: "1", d: "l1\\nl2\\n", e: {}, f: null, g: "yes" }), 'a:\\n- 1\\n- "x: y"\\n- b: []\\nc: "1"\\nd: |\\n  l1\\n  l2\\ne: {}\\nf: null\\ng: "yes"\\n');
check(diffLines("a\\nb\\nc", "a\\nx\\nc"), [" a", "-b", "+x", " c"]);
check(editable({ metadata: { name: "a", uid: "u", managedFields: [] }, status: {}, spec: 1 }), { metadata: { name: "a" }, spec: 1 });
check(requestRows(parseMetrics('apiserver_request_total{code="500",verb="GET",resource="pods",group=""} 4\\n'), null, 2), [["GET pods", "2.0", "0.00", 4]]);
"""


def scripts(binary, folder):
    if shutil.which("node") is None:
        print("scripts: no node, left out")
        return
    for name in ("yaml.js", "server.js", "api.js", "dom.js"):
        shutil.copy(os.path.join(source_root(), "src", "console", "files", name), folder)
    for name, text in (("package.json", '{"type":"module"}'), ("test.js", NODE)):
        with open(os.path.join(folder, name), "w") as f:
            f.write(text)
    done = subprocess.run(["node", folder + "/test.js"], capture_output=True, text=True, timeout=120)
    expect(done.returncode == 0, done.stderr)


class Browser:
    """One page of a headless chromium."""

    def __init__(self, folder):
        self.process = subprocess.Popen(["chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--remote-debugging-port=0",
                                         "--ignore-certificate-errors", "--no-first-run", "--disable-background-networking", "--user-data-dir=" + folder, "about:blank"],
                                        stdout=subprocess.DEVNULL, stderr=open(folder + ".log", "w"))
        RUNNING.append(self)
        end = time.monotonic() + 120
        while not os.path.exists(folder + "/DevToolsActivePort"):
            expect(time.monotonic() < end and self.process.poll() is None, "chromium does not start")
            time.sleep(0.1)
        port = int(open(folder + "/DevToolsActivePort").readline())
        with urllib.request.urlopen("http://127.0.0.1:%d/json" % port, timeout=60) as answer:
            page = [target for target in json.load(answer) if target["type"] == "page"][0]
        self.socket = socket.create_connection(("127.0.0.1", port), 120)
        path = page["webSocketDebuggerUrl"].split("/", 3)[3]
        self.socket.sendall(("GET /%s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
                             "Sec-WebSocket-Key: %s\r\n\r\n" % (path, port, base64.b64encode(os.urandom(16)).decode())).encode())
        self.file = self.socket.makefile("rb")
        while self.file.readline() not in (b"\r\n", b""):
            pass
        self.number, self.urls = 0, []
        self.command("Network.enable")
        self.command("Page.enable")

    def command(self, method, **parameters):
        self.number += 1
        payload = json.dumps({"id": self.number, "method": method, "params": parameters}).encode()
        mask = b"\0\0\0\0"
        head = struct.pack(">BBH", 0x81, 0x80 | 126, len(payload)) if len(payload) < 65536 else struct.pack(">BBQ", 0x81, 0x80 | 127, len(payload))
        self.socket.sendall(head + mask + payload)
        while True:
            first, size = self.file.read(2)
            size &= 0x7F
            if size == 126:
                size = struct.unpack(">H", self.file.read(2))[0]
            elif size == 127:
                size = struct.unpack(">Q", self.file.read(8))[0]
            message = json.loads(self.file.read(size))
            if message.get("method") == "Network.requestWillBeSent":
                self.urls.append(message["params"]["request"]["url"])
            if message.get("id") == self.number:
                expect("error" not in message, str(message))
                return message["result"]

    def run(self, script):
        result = self.command("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        expect("exceptionDetails" not in result, "%s: %s" % (script[:200], result.get("exceptionDetails")))
        return result["result"].get("value")

    def until(self, script, what, seconds=60):
        end = time.monotonic() + seconds
        while not self.run(script):
            expect(time.monotonic() < end, "%s; the page has: %s" % (what, self.run("document.body.innerText")[:1500]))
            time.sleep(0.05)

    def has(self, text, seconds=60):
        self.until("(document.body ? document.body.innerText : '').includes(%s)" % json.dumps(text), "no %r" % text, seconds)

    def click(self, text):
        self.until("[...document.querySelectorAll('button')].some((b) => b.textContent === %s && !b.disabled)" % json.dumps(text), "no button %r" % text)
        self.run("[...document.querySelectorAll('button')].find((b) => b.textContent === %s).click()" % json.dumps(text))

    def go(self, hash_):
        self.run("location.hash = %s" % json.dumps(hash_))


def sign_in(browser, server, token):
    # Chromium that just started may drop the requests of its first page when it learns of its network interfaces: once more then.
    for last in (False, False, True):
        browser.command("Page.navigate", url="https://127.0.0.1:%d/console" % server.port)
        try:
            browser.has("Sign in", 60 if last else 15)
            break
        except AssertionError:
            if last:
                raise
    browser.run("document.querySelector('input[type=password]').value = %s; document.querySelector('form').requestSubmit()" % json.dumps(token))


def browser(binary, folder):
    if shutil.which("chromium") is None:
        print("browser: no chromium, left out")
        return
    server = started(binary, folder)
    client = Client(server)
    client.must(201, "POST", MAPS, config_map("first", {"a": "<script>alert(1)</script>"}))
    page = Browser(folder + "/profile")

    sign_in(page, server, "wrong")
    page.has("Not signed in")
    sign_in(page, server, "admin-token")
    page.until("document.getElementById('user').textContent === 'root'", "not signed in")
    page.until("document.querySelectorAll('#kinds a').length > 50", "no kinds")
    page.run("const s = document.getElementById('search'); s.value = 'dplymnt'; s.dispatchEvent(new Event('input'))")
    page.until("document.querySelectorAll('#kinds a').length === 1 && document.querySelector('#kinds a').textContent === 'Deployment'", "the search")

    # A table that follows what happens.
    page.go("#/list/core/v1/configmaps")
    page.has("first")
    client.must(201, "POST", MAPS, config_map("second", {"a": "b"}))
    page.has("second")
    client.must(200, "DELETE", MAPS + "/second")
    page.until("!document.querySelector('main').innerText.includes('second')", "a deleted object stays")

    # An edit: dry run with its diff, then the change; what another manages is a conflict.
    page.go("#/object/core/v1/configmaps/default/first")
    page.has("<script>alert(1)</script>")
    page.click("Edit")
    page.run("const t = document.querySelector('textarea'); t.value += 'immutable: false\\n'; t.dispatchEvent(new Event('input'))")
    page.click("Dry run")
    page.has("+immutable: false")
    expect("immutable" not in client.must(200, "GET", MAPS + "/first"), "the dry run wrote")
    page.click("Apply")
    page.has("Applied.")
    expect(client.must(200, "GET", MAPS + "/first")["immutable"] is False, "not applied")
    client.must(200, "PATCH", MAPS + "/first?fieldManager=other&force=true", json.dumps(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "first"}, "data": {"z": "other"}}), content_type="application/apply-patch+yaml")
    page.go("#/")
    page.go("#/object/core/v1/configmaps/default/first")
    page.has("z: other")
    page.click("Edit")
    page.run("const u = document.querySelector('textarea'); u.value = u.value.replace('z: other', 'z: mine'); u.dispatchEvent(new Event('input'))")
    page.click("Dry run")
    page.has("conflict")

    # The server's own page.
    page.go("#/server")
    page.has("ready: every check passes")
    page.has("global-default")

    # Many objects: only rows in view are in the document.
    for i in range(600):
        client.must(201, "POST", MAPS, config_map("many-%04d" % i, {}))
    page.go("#/list/core/v1/configmaps")
    page.has("and more")
    page.click("Load more")
    page.until("!document.body.innerText.includes('and more')", "the second page")
    rows = page.run("document.querySelectorAll('tbody tr').length")
    expect(rows < 200, "%d rows in the document" % rows)

    # Somebody who may see nothing.
    sign_in(page, server, "guest-token")
    page.until("document.getElementById('user').textContent === 'guest'", "not signed in")
    page.go("#/list/core/v1/secrets")
    page.has("Not permitted")
    elsewhere = [url for url in page.urls if not url.startswith(("https://127.0.0.1:%d/" % server.port, "about:", "data:"))]
    expect(len(page.urls) > 20 and not elsewhere, "requests to elsewhere: %s" % elsewhere)
    server.stop()


TESTS = [pages, scripts, browser]


def main():
    binary, folder = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    chosen = sys.argv[3:]
    failures = []
    for test in TESTS:
        if chosen and test.__name__ not in chosen:
            continue
        place = os.path.join(folder, test.__name__)
        shutil.rmtree(place, ignore_errors=True)
        os.makedirs(place)
        begin = time.monotonic()
        try:
            test(binary, place)
            result = "ok"
        except Exception as error:  # any failure is a finding; the next test runs all the same
            failures.append(test.__name__)
            result = "FAILED: %s: %s" % (type(error).__name__, error)
        while RUNNING:
            process = RUNNING.pop().process
            if process and process.poll() is None:
                process.kill()
                process.wait()
        print("%s: %s (%.1f s)" % (test.__name__, result, time.monotonic() - begin), flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
