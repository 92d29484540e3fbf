"""The HTTP interface: every path of the contract, the stream, and who may ask."""

import asyncio
import http.client
import json
import random
import re
import threading
import time
from pathlib import Path
from urllib.parse import quote

import pytest

from scout_rl import rules
from scout_rl.files.refusal import Refusal
from scout_rl.watch import api, server
from scout_rl.watch.guard import HEADERS, Guard
from scout_rl.watch.server import address, application, bind
from scout_rl.watch.watcher import Watcher
from tests.watch.client import Client, request
from tests.watch.planted import GrowingRun, campaign, damaged

SECRET = "the secret outside"
NAME = "<script>alert(1)</script>"
PNG = b"\x89PNG\r\n\x1a\n" + bytes(20)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("watched")
    root = folder / "runs"
    campaign(root / "campaign", windows=20)
    damaged(root / "damaged")
    own = GrowingRun(root / NAME.replace("/", "|"), kind="log_dir", rule=rules.Scout(), name=NAME).play(30)
    (own.folder / "rungs").mkdir()
    (own.folder / "rungs" / "3.png").write_bytes(PNG)
    (own.folder / "rungs.png").write_bytes(PNG)
    (own.folder / "rungs" / "4.png").write_text("no picture")
    (folder / "secret.txt").write_text(SECRET)
    (own.folder / "rungs" / "5.png").symlink_to(folder / "secret.txt")
    (own.folder / "notes.txt").write_text(SECRET)
    (own.folder / "link").symlink_to(folder)
    return folder


@pytest.fixture(scope="module")
def client(place):
    return Client(place / "runs")


def own(client):
    return client.id(NAME.replace("/", "|"))


PATHS = re.findall(r"^    (/\S*)  ", api.__doc__, flags=re.M)


def test_every_path_of_the_contract_is_answered(client):
    (line,) = client.get("/api/overview")["campaigns"]
    assert len(PATHS) == 15
    for path in PATHS:
        if path == "/api/updates":
            continue
        values = {"ID": line["id"] if "campaigns" in path else own(client), "X": "3"}
        values["NAME"] = "watch.js" if "page" in path else "rungs/3.png"
        target = re.sub(r"ID|X|NAME", lambda name, values=values: values[name[0]], path)
        status, headers, body = client.ask(target)
        assert status == 200, (path, body)
        if "/api/" in path and "pictures" not in path:
            assert headers["content-type"] == "application/json"
            json.loads(body)


def test_an_answer_has_the_fields_of_the_contract(client):
    """Every name in quotes of the contract's examples is in some answer, and no answer has a name beyond them."""
    told = set(re.findall(r'"([a-z_]+)":', api.__doc__))
    (line,) = client.get("/api/overview")["campaigns"]
    answers = [client.get("/api/overview"), client.get(f"/api/campaigns/{line['id']}")]
    for key in (own(client), client.id("campaign/planted/ability/40")):
        parts = ("", "/heat", "/curves", "/shares", "/events", "/stuck", "/time", "/contexts/3")
        answers += [client.get(f"/api/runs/{key}{part}") for part in parts]
        answers.append(client.get(f"/api/compare?run={key}&run={client.id('campaign/planted/scout/40')}"))
    free = {"config", "versions", "ran_on", "groups", "counts", "by_reason"}
    names = set()

    def collect(value):
        if isinstance(value, dict):
            for name, item in value.items():
                names.add(name)
                if name not in free:
                    collect(item)
        elif isinstance(value, list):
            for item in value:
                collect(item)

    collect(answers)
    assert names <= told, names - told
    examples = {"numpy", "easy", "hard", "finished", "training", "failed", "evidence_missing", "gone", "error"}
    assert told - names <= examples | {"rows", "advance"}, told - names


def test_texts_are_json_and_never_html(client):
    overview = client.get("/api/overview")
    assert NAME in {row["label"] for row in overview["runs"]}
    page = client.ask("/")[2].decode()
    for word in ("alert(1)", "onload=", "onclick=", "<style", "style="):
        assert word not in page
    assert not re.findall(r"<script(?![^>]*\ssrc=)", page)  # scripts are files


def test_wrong_requests(client):
    key = own(client)
    for target, status in (
        ("/api/runs/0000000000000000", 404),
        ("/api/runs/0000000000000000/heat", 404),
        (f"/api/runs/{key}/nonsense", 404),
        (f"/api/runs/{key}/contexts/20", 404),
        (f"/api/runs/{key}/contexts/-1", 404),
        (f"/api/runs/{key}/contexts/1e3", 404),
        (f"/api/runs/{key}/heat?columns=999999", 400),
        (f"/api/runs/{key}/heat?columns=x", 400),
        (f"/api/runs/{key}/heat?since=-1", 400),
        (f"/api/runs/{key}/events?limit=9999999", 400),
        (f"/api/runs/{key}/pictures/rungs/4.png", 404),
        (f"/api/runs/{key}/pictures/rungs/6.png", 404),
        (f"/api/runs/{key}/pictures/notes.txt", 404),
        ("/api/compare", 400),
        ("/api/compare?run=x", 404),
        ("/api/campaigns/x", 404),
        ("/page/nonsense.js", 404),
        ("/page/__init__.py", 404),
        ("/favicon.ico", 404),
    ):
        got, _, body = client.ask(target)
        assert got == status, (target, got, body)
        assert set(json.loads(body)) == {"error"}


def test_pictures_of_rungs(client):
    key = own(client)
    assert client.get(f"/api/runs/{key}")["pictures"] == ["rungs.png"]
    assert client.get(f"/api/runs/{key}/contexts/3")["pictures"] == ["rungs/3.png", "rungs.png"]
    assert client.get(f"/api/runs/{key}/contexts/5")["pictures"] == ["rungs.png"]  # a link is none
    status, headers, body = client.ask(f"/api/runs/{key}/pictures/rungs/3.png")
    assert (status, headers["content-type"], body) == (200, "image/png", PNG)


def test_a_run_that_cannot_be_read_is_a_sentence(tmp_path):
    run = GrowingRun(tmp_path / "run").play(3)
    (run.folder / "config.json").write_text("{}")
    client = Client(tmp_path)
    status, _, body = client.ask(f"/api/runs/{client.id('run')}/heat")
    assert status == 409
    assert "config.json" in json.loads(body)["error"]


def test_numbers_that_are_none_in_a_config(tmp_path):
    run = GrowingRun(tmp_path / "run").play(3)
    about = json.loads((run.folder / "run.json").read_text())
    about["config"]["learner"] = {"clip": float("nan"), "limits": [float("inf")]}
    (run.folder / "run.json").write_text(json.dumps(about))
    answer = Client(tmp_path).run("run")
    assert answer["config"]["learner"] == {"clip": "nan", "limits": ["inf"]}


# -- who may ask -------------------------------------------------------------------------------------------------------


def test_only_get_is_answered(client):
    for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "get", "X"):
        status, headers, _ = client.ask("/api/overview", method=method)
        assert (status, headers["allow"]) == (405, "GET, HEAD")
    assert client.ask("/api/overview", method="HEAD")[0] == 200


@pytest.mark.parametrize("host", ["localhost", "localhost:9999", "127.0.0.1:1", "[::1]:8765", "LocalHost:80"])
def test_hosts_of_this_machine_at_any_port(client, host):
    """An ssh tunnel may end at another port."""
    assert client.ask("/api/overview", host=host)[0] == 200


@pytest.mark.parametrize(
    "host",
    [
        *(
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example:8765",
            "evil.example:8765",
            "",
            "localhost:x",
        ),
        *(
            "localhost@evil.example",
            "evil.example#localhost",
            "evil.example/localhost",
            "192.168.1.5",
            "0.0.0.0",
            "[::1",
            None,
        ),
    ],
)
def test_other_hosts_are_refused(client, host):
    """DNS rebinding: a page of another name that resolves to this machine."""
    assert client.ask("/api/overview", host=host)[0] == 403


def test_two_host_headers_are_refused(client):
    assert client.ask("/api/overview", headers=[("host", "localhost")])[0] == 403


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "http://localhost:8888", "file://", "http://localhost:8765.x"]
)
def test_pages_of_other_origins_are_refused(client, origin):
    assert client.ask("/api/overview", headers=[("origin", origin)])[0] == 403


def test_our_own_origin_and_navigation_are_fine(client):
    assert client.ask("/api/overview", headers=[("origin", "http://localhost:8765")])[0] == 200
    cross = ("sec-fetch-site", "cross-site")
    assert client.ask("/", headers=[cross, ("sec-fetch-mode", "navigate")])[0] == 200
    assert client.ask("/api/overview", headers=[cross, ("sec-fetch-mode", "no-cors")])[0] == 403


def test_every_answer_has_strict_headers(client):
    for target in ("/", "/page/watch.js", "/api/overview", "/nothing"):
        headers = client.ask(target)[1]
        for name, value in HEADERS.items():
            assert headers[name] == value
    policy = HEADERS["content-security-policy"]
    assert "unsafe" not in policy
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'")
    refused = client.ask("/", host="evil.example")[1]
    assert refused["content-security-policy"] == policy


def test_another_host_needs_a_token(place):
    watcher = Watcher([place / "runs"])
    with pytest.raises(Refusal, match="it needs a token"):
        application(watcher, "0.0.0.0")
    client = Client(place / "runs", host="0.0.0.0", token="s3cret-token")
    host = "10.0.0.7:8765"
    for target in ("/", "/api/overview", "/page/watch.js", "/?token=wrong", "/api/updates", "/?token="):
        assert client.ask(target, host=host)[0] == 403
    assert client.ask("/api/overview", host=host, headers=[("cookie", "scout_watch=wrong")])[0] == 403
    assert client.ask("/api/overview", host=host, headers=[("cookie", "a=\x00; scout_watch")])[0] == 403
    status, headers, _ = client.ask("/?token=s3cret-token", host=host)
    assert (status, headers["location"]) == (302, "/")
    cookie = headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    asked = {"host": host, "headers": [("cookie", cookie.partition(";")[0])]}
    assert client.ask("/api/overview", **asked)[0] == 200
    assert client.ask("/api/overview", host="evil.example", headers=asked["headers"])[0] == 403


@pytest.mark.parametrize(
    "other",
    ['prefs={"theme":"dark"}', '{"a":1}', "user@host=1", "a[b]=1", "pref=a b", '_xsrf="2|1:0|10', "no value", ""],
)
def test_cookies_of_other_services_on_this_host(place, other):
    client = Client(place / "runs", host="0.0.0.0", token="s3cret-token")
    for cookie in (f"{other}; scout_watch=s3cret-token", f"scout_watch=s3cret-token;{other}"):
        assert client.ask("/api/overview", host="10.0.0.7:8765", headers=[("cookie", cookie)])[0] == 200
    for cookie in (other, f"{other}; scout_watch=", f"{other}; x_scout_watch=s3cret-token"):
        assert client.ask("/api/overview", host="10.0.0.7:8765", headers=[("cookie", cookie)])[0] == 403


@pytest.mark.parametrize("port", [99999, 65536, -1])
def test_a_port_that_is_none(port):
    with pytest.raises(Refusal, match=rf"--port is {port}, but ports are from 0 to 65535"):
        bind("127.0.0.1", port)


def test_a_socket_is_for_this_machine_alone_unless_told():
    with bind("127.0.0.1", 0) as first:
        assert first.getsockname()[0] == "127.0.0.1"
        assert address(first, "127.0.0.1") == f"http://127.0.0.1:{first.getsockname()[1]}/"
        with pytest.raises(Refusal, match="cannot be taken"):
            bind("127.0.0.1", first.getsockname()[1])
    assert server.make_token() != server.make_token()


def test_websockets_are_not_answered():
    sent = []

    async def connect():
        async def send(message):
            sent.append(message)

        await Guard(None, "127.0.0.1", "")({"type": "websocket", "headers": []}, None, send)

    asyncio.run(connect())
    assert sent == []


# -- no path leads out -------------------------------------------------------------------------------------------------

CASES = 10_000


def attacks(rng, place, keys):
    """A path that tries to leave the run folders, or to break the server."""
    steps = [
        "..",
        ".",
        "",
        "rungs",
        "link",
        "secret.txt",
        "notes.txt",
        "rungs.png",
        "5.png",
        "etc",
        "passwd",
        "run.json",
    ]
    steps += [
        "config.json",
        "windows.jsonl",
        "~",
        "proc",
        "self",
        "environ",
        str(place),
        "C:",
        "\x00",
        "%00",
        "page",
        "api",
    ]
    steps += [
        "rungs/5.png",
        "link/secret.txt",
        "..;",
        "....",
        "\u2025",
        "\uff0e\uff0e",
        "watch.js",
        "index.html",
        "3",
        "-1",
    ]
    base = rng.choice(
        [
            *("/page/", "/api/runs/{}/pictures/", "/api/runs/{}/contexts/", "/api/runs/", "/api/runs/{}/"),
            *("/", "/api/", "/api/compare?run=", "/api/runs/{}/events?context=", "//", "/page/../../", "/page/%2e%2e/"),
            "/api/campaigns/",
        ]
    ).format(rng.choice(keys))
    path = rng.choice(["/", "//", "\\", "/./", "%2f", "%5c"]).join(rng.choice(steps) for _ in range(rng.randint(1, 7)))
    for _ in range(rng.randint(0, 2)):
        path = rng.choice(
            [quote, lambda p: quote(p, safe=""), lambda p: p.replace(".", "%2e"), lambda p: quote(quote(p))]
        )(path)
    if rng.random() < 0.3:
        cut = rng.randint(0, len(path))
        path = (
            path[:cut]
            + "".join(chr(rng.choice((rng.randint(0, 255), rng.randint(0, 0xD7FF)))) for _ in range(3))
            + path[cut:]
        )
    return base + path


def test_no_request_reaches_a_file_outside_the_runs(client, place):
    """10,000 of them: traversal, encodings, links. None answers what lies outside, and none breaks the server."""
    rng, keys = random.Random(0), list(client.watcher.rows)
    allowed = {(client.ask(f"/page/{name}")[2]) for name in ("watch.js", "watch.css", "index.html")}

    async def fuzz():
        statuses = {}
        for _ in range(CASES):
            target = attacks(rng, place, keys)
            status, headers, body = await request(client.app, target)
            statuses[status] = statuses.get(status, 0) + 1
            assert status in (200, 307, 400, 404), (target, status)
            assert SECRET.encode() not in body, target
            assert b"root:" not in body, target
            if status == 200 and headers["content-type"] != "application/json":
                assert body in allowed or body == PNG, target
        return statuses

    statuses = asyncio.run(fuzz())
    assert sum(statuses.values()) == CASES
    assert statuses[404] > 0.8 * CASES


def test_the_fuzz_would_notice(client, place, monkeypatch):
    """A server that joins paths is caught by the same cases."""
    rng, keys = random.Random(0), list(client.watcher.rows)
    leaks = 0
    for _ in range(CASES):
        from urllib.parse import unquote

        target = unquote(attacks(rng, place, keys))
        if "/pictures/" in target and "\x00" not in target:
            path = Path(f"{client.watcher.rows[own(client)].place.path}/{target.split('/pictures/')[1]}")
            try:
                leaks += path.is_file() and SECRET in path.read_text(errors="replace")
            except OSError:
                continue
    assert leaks > 3


# -- over the network --------------------------------------------------------------------------------------------------


@pytest.fixture
def served(tmp_path):
    """A real server over a run that grows."""
    import uvicorn

    run = GrowingRun(tmp_path / "run").play(5)
    app = application(Watcher([tmp_path]), interval=0.05)
    listening = bind("127.0.0.1", 0)
    serving = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="on", timeout_graceful_shutdown=1))
    thread = threading.Thread(target=serving.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    yield run, listening.getsockname()[1]
    serving.should_exit = True
    thread.join(20)
    listening.close()
    assert not thread.is_alive()


def messages(response):
    """The events of a stream, one after the other."""
    event = None
    while line := response.readline().decode():
        if line.startswith("event: "):
            event = line[7:].strip()
        elif line.startswith("data: "):
            yield event, json.loads(line[6:])


def test_a_run_in_progress_is_told_without_asking(served):
    run, port = served
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", "/api/updates")
    response = connection.getresponse()
    assert response.headers["content-type"].startswith("text/event-stream")
    stream = messages(response)
    assert next(stream) == ("hello", {"interval": 0.05})
    run.play(1)
    end = time.monotonic() + 60
    for event, data in stream:
        assert event == "rows"
        if data["rows"][0]["windows"] == 6:
            break
        assert time.monotonic() < end
    other = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    other.request("GET", f"/api/runs/{data['rows'][0]['id']}/heat")
    assert json.loads(other.getresponse().read())["windows"] == 6
    connection.close()
    other.close()


def test_too_many_pages_are_refused(served, monkeypatch):
    _, port = served
    monkeypatch.setattr(server, "STREAMS", 1)
    first, second = (http.client.HTTPConnection("127.0.0.1", port, timeout=60) for _ in range(2))
    first.request("GET", "/api/updates")
    assert first.getresponse().readline()
    second.request("GET", "/api/updates")
    response = second.getresponse()
    assert response.status == 503
    assert "pages are open already" in json.loads(response.read())["error"]
    first.close()
    second.close()
