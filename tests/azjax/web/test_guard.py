"""What the server refuses: other hosts and origins, large bodies, paths outside, and requests that are no request."""

import json

import hypothesis
import hypothesis.strategies as st
import pytest

from azjax.web.guard import MOST_BODY

JSON = {"content-type": "application/json"}


@pytest.mark.parametrize("host", ["127.0.0.1:8765", "localhost:8765", "localhost", "[::1]:8765"])
def test_this_machines_names_are_served(client, host):
    answer = client.get("/", headers={"host": host})
    assert answer.status_code == 200 and "<title" in answer.text


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8765", "127.0.0.1.evil.example", "10.0.0.1:8765", ""])
def test_other_hosts_are_refused(client, host):
    assert client.get("/", headers={"host": host}).status_code == 400


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"origin": "http://127.0.0.1:8765"}, 200),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "http://127.0.0.1:9999"}, 403),
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"sec-fetch-site": "same-origin"}, 200),
    ],
)
def test_only_this_page_may_ask(client, headers, status):
    assert client.post("/api/start", content="{}", headers=JSON | headers).status_code == status


def test_a_form_of_another_page_is_no_request(client):
    assert client.post("/api/start", data={"a": "b"}).status_code == 415
    assert client.post("/api/start", content="{}", headers={"content-type": "text/plain"}).status_code == 415


def test_large_bodies_are_refused_whatever_length_they_claim(client):
    body = b'{"text": "' + b"a" * MOST_BODY + b'"}'
    assert client.post("/api/new", content=body, headers=JSON).status_code == 413
    chunks = (body[at : at + 1000] for at in range(0, len(body), 1000))  # sent without a length
    assert client.post("/api/new", content=chunks, headers=JSON).status_code == 413


@pytest.mark.parametrize(
    "path",
    [
        "/../../../../etc/passwd",
        "/..%2f..%2fetc%2fpasswd",
        "/static/../app.py",
        "//etc/passwd",
        "/app.py",
        "/%2e%2e/app.py",
        "/api/../app.py",
        "/index.html%00",
    ],
)
def test_paths_outside_are_not_there(client, path):
    answer = client.get(path)
    assert answer.status_code == 404 and "root:" not in answer.text


def test_answers_may_not_be_framed_or_load_anything_from_elsewhere(client):
    headers = client.get("/").headers
    assert "default-src 'none'" in headers["content-security-policy"]
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"


def test_the_page_names_no_other_site(client):
    for name in ("", "main.js", "play.js", "runs.js", "board.js", "seat.js", "net.js", "style.css"):
        answer = client.get(f"/{name}")
        assert answer.status_code == 200 and "http://" not in answer.text and "https://" not in answer.text


@pytest.mark.parametrize(
    "body", ["", "[]", "null", "{", '{"table": NaN}', "[" * 5000, "\x00", '{"table": 1}', '{"table": "x"}']
)
def test_what_is_no_request_is_told_so(client, body):
    answer = client.post("/api/move", content=body, headers=JSON)
    assert answer.status_code == 400 and "\n" not in answer.json()["error"]


NAMES = ("new", "view", "move", "word", "reply", "back", "search", "curve", "record", "curves", "games", "replay")
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["kind", "run"]), inner, max_size=2),
    max_leaves=4,
)
FIELDS = st.dictionaries(st.sampled_from("table game text action ply plies agent run file runs number".split()), VALUES)


@hypothesis.settings(max_examples=120)
@hypothesis.given(name=st.sampled_from(NAMES), fields=FIELDS, with_table=st.booleans())
def test_no_request_breaks_the_server(client, ask, table, name, fields, with_table):
    if with_table:
        fields = fields | {"table": table}
    answer = client.post(f"/api/{name}", content=json.dumps(fields), headers=JSON)
    assert answer.status_code in (200, 400, 413)


@pytest.fixture(scope="module")
def table(ask):
    return ask("new", game="tic_tac_toe")["table"]
