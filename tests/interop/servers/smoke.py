"""Tries what a server offers, in raw JSON-RPC: `smoke.py {stdio|http|sse} {legacy|modern} PROGRAM...`.

One line for each thing: its name, and `ok` or what there is to say, or `FAILED` and why; then the exit code is 1. Needs
nothing but Python; `PROGRAM` gets the mode as its last argument.
"""

import http.client
import json
import queue
import socket
import subprocess
import sys
import threading
import time
from urllib.parse import urljoin, urlsplit

LIMIT = 5
MODERN = "2026-07-28"
LEGACY = "2025-11-25"
META = "io.modelcontextprotocol/"
ABILITIES = {"elicitation": {"form": {}}, "sampling": {}, "roots": {"listChanged": True}}
ANSWERS = {
    "elicitation/create": {"action": "accept", "content": {"name": "Ann", "age": 7}},
    "sampling/createMessage": {
        "role": "assistant",
        "content": {"type": "text", "text": "sampled"},
        "model": "m",
        "stopReason": "endTurn",
    },
    "roots/list": {"roots": [{"uri": "file:///one"}, {"uri": "file:///two"}]},
    "ping": {},
}


class Failed(Exception):
    pass


class Stdio:
    def __init__(self, server, client):
        self.input = server.stdin
        self.client = client
        threading.Thread(target=self.read, args=[server.stdout], daemon=True).start()

    def read(self, output):
        for line in output:
            self.client.came(json.loads(line))
        self.client.came({"closed": "stdout"})

    def send(self, message):
        self.input.write(json.dumps(message) + "\n")
        self.input.flush()


class Http:
    """Streamable HTTP, and HTTP+SSE, where the server says on the stream where to post."""

    def __init__(self, server, client):
        line = server.stdout.readline()
        assert line.startswith("listening on http://127.0.0.1:"), line
        self.url = line.split()[-1]
        self.client = client
        self.headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}

    def send(self, message):
        headers = dict(self.headers)
        if self.client.modern:
            params = message.get("params", {})
            headers |= {"MCP-Protocol-Version": MODERN, "Mcp-Method": message.get("method", "")}
            if name := params.get("name") or params.get("uri"):
                headers["Mcp-Name"] = name
        self.start("POST", json.dumps(message).encode(), headers)

    def listen(self, **more):
        """Opens the GET stream."""
        self.start("GET", None, self.headers | {"Accept": "text/event-stream"} | more)

    def hang_up(self):
        """Closes the connection of the last exchange."""
        self.connection.sock.shutdown(socket.SHUT_RDWR)

    def start(self, verb, body, headers):
        parts = urlsplit(self.url)
        self.connection = http.client.HTTPConnection(parts.hostname, parts.port)
        target = parts.path + (f"?{parts.query}" if parts.query else "")
        self.connection.request(verb, target, body, headers)
        threading.Thread(target=self.finish, args=[verb, self.connection], daemon=True).start()

    def finish(self, verb, connection):
        try:
            self.read(verb, connection.getresponse())
        except (OSError, http.client.HTTPException):
            # Either side hung up.
            pass

    def read(self, verb, response):
        if session := response.getheader("Mcp-Session-Id"):
            self.headers["Mcp-Session-Id"] = session
        kind = response.getheader("Content-Type", "")
        self.client.statuses.append((verb, response.status, kind))
        if kind.startswith("text/event-stream"):
            self.read_events(verb, response)
            return
        content = response.read().decode()
        try:
            message = json.loads(content)
        except ValueError:
            message = None
        if isinstance(message, dict) and "jsonrpc" in message:
            # Errors of HTTP may have no id; one request at a time is enough here.
            if response.status >= 400:
                message |= {"status": response.status, "id": message.get("id") or self.client.last}
            self.client.came(message)
        elif response.status >= 400 and verb == "POST":
            self.client.came({"id": self.client.last, "status": response.status, "error": content})

    def read_events(self, verb, response):
        event = {}
        last, answered = None, False
        for line in response:
            line = line.decode().rstrip("\r\n")
            if line:
                field, _, value = line.partition(":")
                event[field] = value.removeprefix(" ")
                continue
            last = event.get("id", last)
            self.client.events.append((verb, event))
            if event.get("event") == "endpoint":
                self.url = urljoin(self.url, event["data"])
                self.client.came({"endpoint": self.url})
            elif event.get("data"):
                message = json.loads(event["data"])
                answered |= "method" not in message
                self.client.came(message)
            event = {}
        if verb == "POST" and last and not answered:
            self.client.resumed += 1
            time.sleep(0.02)
            self.listen(**{"Last-Event-ID": last})


class Client:
    def __init__(self, mode, era, program):
        self.modern = era == "modern"
        self.messages = queue.Queue()
        self.statuses, self.events, self.notes, self.asked = [], [], [], []
        self.resumed, self.last = 0, 0
        self.answers = dict(ANSWERS)
        self.server = subprocess.Popen(
            [*program, f"--{mode}"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self.complaints = []
        threading.Thread(target=lambda: self.complaints.extend(self.server.stderr), daemon=True).start()
        self.transport = Stdio(self.server, self) if mode == "stdio" else Http(self.server, self)
        if mode == "sse":
            self.transport.listen()
            self.next(time.monotonic() + LIMIT)

    def came(self, message):
        self.messages.put(message)

    def next(self, until):
        try:
            return self.messages.get(timeout=max(0, until - time.monotonic()))
        except queue.Empty:
            raise Failed("no answer") from None

    def send(self, method, params=None, **more):
        params = dict(params or {})
        if self.modern and "id" in more:
            envelope = {
                META + "protocolVersion": MODERN,
                META + "clientInfo": {"name": "smoke", "version": "1"},
                META + "clientCapabilities": ABILITIES,
            }
            params["_meta"] = envelope | params.get("_meta", {})
        self.transport.send({"jsonrpc": "2.0", "method": method, "params": params} | more)

    def start(self, method, params=None):
        self.last += 1
        self.send(method, params, id=self.last)
        return self.last

    def answer(self, message):
        """Handles what is no response: notes it, or answers."""
        if "id" in message and "method" in message:
            self.asked.append(message["method"])
            self.transport.send({"jsonrpc": "2.0", "id": message["id"], "result": self.answers[message["method"]]})
        else:
            self.notes.append(message)

    def finish(self, number):
        until = time.monotonic() + LIMIT
        while True:
            message = self.next(until)
            if "closed" in message:
                raise Failed(f"the server ended: {self.server.wait(LIMIT)}")
            if message.get("id") == number and "method" not in message:
                return message
            self.answer(message)

    def request(self, method, params=None):
        params = dict(params or {})
        for _ in range(5):
            message = self.finish(self.start(method, params))
            if "error" in message:
                raise Failed(json.dumps({key: message[key] for key in ("status", "error") if key in message}))
            result = message["result"]
            if result.get("resultType") != "input_required":
                return result
            self.asked += [request["method"] for request in result.get("inputRequests", {}).values()]
            params["inputResponses"] = {
                key: self.answers[request["method"]] for key, request in result.get("inputRequests", {}).items()
            }
            if "requestState" in result:
                params["requestState"] = result["requestState"]
        raise Failed("too many rounds")

    def call(self, name, _meta=None, **arguments):
        params = {"name": name, "arguments": arguments}
        result = self.request("tools/call", params | ({"_meta": _meta} if _meta else {}))
        return result["content"][0]["text"], result

    def noted(self, method, number=1):
        """Waits until so many notifications with this method came."""
        until = time.monotonic() + 1
        while len(found := [note for note in self.notes if note.get("method") == method]) < number:
            try:
                self.answer(self.next(until))
            except Failed:
                break
        return found

    def open(self):
        if self.modern:
            return
        client = {"protocolVersion": LEGACY, "capabilities": ABILITIES, "clientInfo": {"name": "s", "version": "1"}}
        self.opened = self.request("initialize", client)
        if isinstance(self.transport, Http):
            self.transport.headers["MCP-Protocol-Version"] = self.opened["protocolVersion"]
        self.send("notifications/initialized")
        if isinstance(self.transport, Http) and "/mcp" in self.transport.url:
            time.sleep(0.1)
            self.transport.listen()
            time.sleep(0.2)


def same(found, wanted):
    if found != wanted:
        raise Failed(f"{found!r} instead of {wanted!r}")


def opening(client):
    if not client.modern:
        same(client.opened["serverInfo"]["name"], "interop")
        return json.dumps([client.opened["protocolVersion"], client.opened["capabilities"]])
    return json.dumps(client.request("server/discover"))


def add(client):
    said, result = client.call("add", a=2, b=3)
    same((float(said), result.get("structuredContent")), (5.0, {"sum": 5}))


def fail(client):
    said, result = client.call("fail")
    same((said, result.get("isError")), ("as asked", True))


def slow(client):
    same(client.call("slow", steps=3, _meta={"progressToken": "p"})[0], "done")
    same([note["params"]["progress"] for note in client.noted("notifications/progress", 3)], [1, 2, 3])


def cancel(client):
    number = client.start("tools/call", {"name": "wait", "arguments": {}})
    time.sleep(0.3)
    if client.modern and isinstance(client.transport, Http):
        client.transport.hang_up()
    else:
        client.send("notifications/cancelled", {"requestId": number})
    time.sleep(0.3)
    same("cancelled\n" in client.complaints, True)
    try:
        return f"answered with {json.dumps(client.messages.get(timeout=0.2))}"
    except queue.Empty:
        return "not answered"


def asked(client, tool, wanted, method):
    """Calls a tool that asks the client; tells on which stream it did."""
    same((client.call(tool)[0], client.asked[-1:]), (wanted, [method]))
    verbs = [verb for verb, event in client.events if f'"{method}"' in event.get("data", "")]
    return f"ok, on the stream of a {verbs[-1]}" if verbs else None


def ask(client):
    for action, wanted in {"decline": "declined", "cancel": "cancelled"}.items():
        client.answers["elicitation/create"] = {"action": action}
        asked(client, "ask", wanted, "elicitation/create")
    client.answers = dict(ANSWERS)
    return asked(client, "ask", "accepted Ann 7", "elicitation/create")


def sample(client):
    return asked(client, "sample", "sampled", "sampling/createMessage")


def roots(client):
    return asked(client, "roots", "file:///one file:///two", "roots/list")


def log(client):
    client.call("log", _meta={META + "logLevel": "info"} if client.modern else None)
    same([note["params"]["data"] for note in client.noted("notifications/message")], ["hello log"])


def touch(client):
    if client.modern:
        wanted = {"toolsListChanged": True, "resourceSubscriptions": ["test://counter"]}
        client.start("subscriptions/listen", {"notifications": wanted})
        same(len(client.noted("notifications/subscriptions/acknowledged")), 1)
    else:
        client.request("resources/subscribe", {"uri": "test://counter"})
    said, _ = client.call("touch")
    same(len(client.noted("notifications/resources/updated")), 1)
    same(len(client.noted("notifications/tools/list_changed")), 1)
    same(client.request("resources/read", {"uri": "test://counter"})["contents"][0]["text"], said)
    if not client.modern:
        client.request("resources/unsubscribe", {"uri": "test://counter"})
        client.call("touch")
        same(len(client.noted("notifications/resources/updated", 2)), 1)


def drop(client):
    before = client.resumed
    same(client.call("drop")[0], "resumed")
    return "resumed" if client.resumed > before else "not dropped"


def resources(client):
    same([item["uri"] for item in client.request("resources/list")["resources"]], ["test://hello", "test://counter"])
    templates = client.request("resources/templates/list")["resourceTemplates"]
    same([item["uriTemplate"] for item in templates], ["test://echo/{text}"])
    same(client.request("resources/read", {"uri": "test://hello"})["contents"][0]["text"], "hello")
    same(client.request("resources/read", {"uri": "test://echo/a%20b"})["contents"][0]["text"], "a b")


def prompts(client):
    pages, names, cursor = 0, [], {}
    while cursor is not None:
        page = client.request("prompts/list", cursor)
        names += [prompt["name"] for prompt in page["prompts"]]
        pages += 1
        cursor = {"cursor": page["nextCursor"]} if "nextCursor" in page else None
    same(names, ["greet", "plain", "third"])
    message = client.request("prompts/get", {"name": "greet", "arguments": {"name": "Ann"}})["messages"][0]
    same((message["role"], message["content"]["text"]), ("user", "Hello, Ann!"))
    client.request("prompts/get", {"name": "plain"})
    return f"in {pages} pages"


def completion(client):
    argument = {"name": "name", "value": "al"}
    params = {"ref": {"type": "ref/prompt", "name": "greet"}, "argument": argument}
    same(client.request("completion/complete", params)["completion"]["values"], ["alice", "albert"])


CHECKS = [opening, add, fail, slow, cancel, ask, sample, roots, log, touch, drop, resources, prompts, completion]


def main():
    mode, era, *program = sys.argv[1:]
    client = Client(mode, era, program)
    failed = 0
    try:
        client.open()
        for check in CHECKS:
            try:
                print(f"{check.__name__}: {check(client) or 'ok'}")
            except (Failed, LookupError) as error:
                failed += 1
                print(f"{check.__name__}: FAILED: {error!r}")
    finally:
        if mode == "stdio":
            client.server.stdin.close()
        else:
            client.server.terminate()
        started = time.monotonic()
        try:
            print(f"end: {client.server.wait(2 * LIMIT)} after {time.monotonic() - started:.0f} s")
        except subprocess.TimeoutExpired:
            failed += 1
            client.server.kill()
            print("end: FAILED: the server does not end")
        print("".join(client.complaints), file=sys.stderr, end="")
    return 1 if failed else 0


sys.exit(main())
