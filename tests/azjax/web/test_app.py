"""The page's questions and answers, without a browser: a game, a search, runs."""

import json
import os
import re
import socket

import numpy as np
import pytest
from starlette.testclient import TestClient

import envs
from azjax.agents.shipped import shipped
from azjax.line import Line, read_line
from azjax.web.app import make_app
from azjax.web.roster import KINDS, Roster
from azjax.web.table import MOST_TABLES
from envs.game_files import read_games
from envs.record import from_json

RECORD = '{"format": 1, "game": "%s", "players": ["a", "b"], "actions": [%s], "returns": null, "end": "unfinished"}'
NETWORK = {"kind": "puct", "run": "small", "step": None, "simulations": 8}


@pytest.fixture
def table(ask):
    return ask("new", game="tic_tac_toe")["table"]


def refused(client, name, **fields):
    answer = client.post(f"/api/{name}", json=fields)
    assert answer.status_code == 400, answer.text
    return answer.json()["error"]


def test_what_there_is(ask):
    said = ask("start")
    assert said["games"][: len(envs.available())] == envs.available()
    assert said["runs"][0] == {"name": "small", "game": "tic_tac_toe", "steps": [10, 20], "simulations": 8}
    assert [run["name"] for run in said["runs"][1:]] == [f"agent:{name}" for name in shipped()]
    assert ("agent:crosshair", "crosshair") in [(run["name"], run["game"]) for run in said["runs"]]
    assert said["kinds"] == list(KINDS)


def test_a_game_to_its_end(ask):
    view = ask("new", game="tic_tac_toe")
    assert (view["ply"], view["mover"], view["over"], len(view["legal"])) == (0, 0, False, 9)
    assert view["legal"][4] == [4, "b2", ["b2"]]
    assert view["svg"].count('class="zone"') == 9
    for action in (4, 0, 3, 1, 5):
        view = ask("move", table=view["table"], action=action)
    assert (view["over"], view["result"], view["legal"]) == (True, "first player won", [])
    assert view["moves"] == ["b2", "a1", "a2", "b1", "c2"]
    earlier = ask("view", table=view["table"], ply=1)
    assert (earlier["ply"], earlier["plies"], earlier["legal"]) == (1, 5, [])
    back = ask("back", table=view["table"], plies=2)
    assert (back["plies"], back["over"]) == (3, False)


def test_a_game_tells_its_rules_and_how_its_board_is_read(ask):
    view = ask("new", game="crosshair,size=3")
    assert view["rules"].startswith("<p>Red, the first player, joins") and "<ol><li>Place a stone" in view["rules"]
    assert view["legend"].startswith("Lit: the row and the column of the last stone")
    assert view["options"] == ["size=3", "diagonal_pinch=false", "max_plies=9"]


def test_moves_that_are_not_legal_change_nothing(client, ask, table):
    ask("move", table=table, action=4)
    for action in (4, 9, 2**30):
        assert "not a legal move" in refused(client, "move", table=table, action=action)
    assert "not legal here" in refused(client, "word", table=table, move="b2")
    assert refused(client, "word", table=table, move="zz").startswith("move: got 'zz'")
    for action in (True, 1.0, "4", None, -1):
        assert refused(client, "move", table=table, action=action).startswith("action: got")
    assert ask("view", table=table)["moves"] == ["b2"]


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_agent_moves_and_the_same_seed_gives_the_same_move(ask, kind):
    agent = {"kind": kind, "simulations": 8} | ({"run": "small"} if kind in ("puct", "gumbel", "policy") else {})
    moves = []
    for _ in range(2):
        table = ask("new", game="tic_tac_toe")["table"]
        moves.append(ask("reply", table=table, agent=agent, seed=3)["moves"])
    assert len(moves[0]) == 1 and moves[0] == moves[1]


def test_two_agents_play_to_the_end(ask, table):
    view = {"over": False}
    agents = [{"kind": "uct", "simulations": 8}, {"kind": "random"}]
    while not view["over"]:
        view = ask("reply", table=table, agent=agents[view.get("mover", 0)])
    assert view["result"] in ("a draw", "first player won", "second player won")


@pytest.mark.parametrize(
    ("agent", "message"),
    [
        ({"kind": "person"}, "kind: got 'person'"),
        ({"kind": "puct", "run": "../small"}, "run: got '../small', which is not one of those found"),
        ({"kind": "puct", "run": "small", "step": 7}, "no checkpoint of step 7"),
        ({"kind": "puct", "run": "small", "simulations": 10**9}, "simulations: got"),
        ({"kind": "uct", "simulations": 0}, "simulations: got 0"),
        ("random", "agent: got 'random', expected an object"),
    ],
)
def test_agents_that_are_not_there(client, table, agent, message):
    assert message in refused(client, "reply", table=table, agent=agent)


def test_a_run_of_another_game_is_refused(client, ask):
    table = ask("new", game="connect_four")["table"]
    assert "small plays tic_tac_toe" in refused(client, "reply", table=table, agent=NETWORK)


def test_the_search_is_stepped_through(ask, table):
    first = ask("search", table=table, agent=NETWORK, simulations=1)
    assert first["simulations"] == 1
    assert len(first["last"]["path"]) == 1 and "a new node, evaluated" in first["last"]["words"]
    assert sum(move["visits"] for move in first["moves"]) == 1
    assert sum(move["prior"] for move in first["moves"]) == pytest.approx(1, abs=1e-3)
    more = ask("search", table=table, agent=NETWORK, simulations=10)
    assert more["simulations"] == 11 and sum(move["visits"] for move in more["moves"]) == 11
    assert more["choice"] == more["moves"][0]["move"] == more["line"][0]
    assert more["tree"].count("<circle") > first["tree"].count("<circle")
    assert more["values"] == [[0, more["value"]]]
    again = ask("search", table=table, agent=NETWORK, simulations=1, again=1)
    assert again["moves"] == first["moves"]
    assert "<svg" in ask("curve", table=table)["svg"]


def test_a_search_begins_anew_when_a_move_was_made(ask, table):
    ask("search", table=table, agent=NETWORK, simulations=5)
    ask("move", table=table, action=0)
    seen = ask("search", table=table, agent=NETWORK, simulations=2)
    assert (seen["simulations"], seen["ply"]) == (2, 1)
    assert {move["move"] for move in seen["moves"]}.isdisjoint({"a1"})
    assert len(seen["values"]) == 2


def test_tables_take_turns_with_one_search(ask, table):
    other = ask("new", game="tic_tac_toe", text="b2")["table"]
    ask("search", table=table, agent=NETWORK, simulations=5)
    assert ask("search", table=other, agent=NETWORK, simulations=3)["simulations"] == 3
    assert ask("search", table=table, agent=NETWORK, simulations=2)["simulations"] == 2


def test_a_win_is_seen_as_the_games_end(ask):
    table = ask("new", game="tic_tac_toe", text="a1 a2 b1 b2")["table"]
    seen = ask("search", table=table, agent={"kind": "uct", "simulations": 1}, simulations=60)
    best = seen["moves"][0]
    assert (best["move"], best["q"], best["prior"], seen["choice"]) == ("c1", 1.0, None, "c1")


def test_gumbel_searches_as_many_simulations_as_it_was_asked_for(ask, table):
    agent = NETWORK | {"kind": "gumbel"}
    seen = ask("search", table=table, agent=agent, simulations=100)
    assert (seen["simulations"], seen["room"]) == (8, 0)
    visits = sorted(move["visits"] for move in seen["moves"])
    assert visits[:5] == [0] * 5 and visits[5:7] == [1, 1]  # four considered, two left after the first half


@pytest.mark.parametrize(
    ("text", "moves"),
    [
        ("b2 a1", ["b2", "a1"]),
        ("b2, a1,\n c3", ["b2", "a1", "c3"]),
        (
            RECORD % ("tic_tac_toe", "4"),
            ["b2"],
        ),
    ],
)
def test_setting_up_from_text(ask, text, moves):
    assert ask("new", game="tic_tac_toe", text=text)["moves"] == moves


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("b2 b2", "move 2: got 'b2'"),
        ("{", "not JSON"),
        (
            RECORD % ("hex", "4"),
            "record: got one of hex",
        ),
        (
            RECORD % ("tic_tac_toe", "4, 4"),
            "event 2: got 4, which is not legal there",
        ),
    ],
)
def test_text_that_is_no_game(client, text, message):
    assert message in refused(client, "new", game="tic_tac_toe", text=text)


@pytest.mark.parametrize("word", ["nogame", "azjax/cli.py:GAME", "os:path", "go,size=99", "go,size", "pgx:tic_tac_toe"])
def test_games_that_are_not_offered(client, word):
    assert re.match(r"game|go|azjax", refused(client, "new", game=word))


def test_a_game_is_saved_as_record_and_moving_picture(ask, table):
    for action in (4, 0, 3):
        ask("move", table=table, action=action)
    made = ask("record", table=table, players=["you", "uct:8"])
    ((suffix, text),) = made["files"]
    record = from_json(text)
    assert suffix == ".jsonl" and text.endswith("}\n")
    assert (record.actions, record.players, record.end) == ((4, 0, 3), ("you", "uct:8"), "unfinished")
    assert made["svg"].count("<animate") == 4


@pytest.mark.parametrize(
    ("game", "moves", "formats"),
    [
        ("chess", "e2e4 e7e5 g1f3", {".pgn": "1. e4 e5 2. Nf3"}),
        ("shogi", "7g7f 3c3d 8h2b+", {".kif": "２二角成(88)", ".usi": "position startpos moves 7g7f 3c3d 8h2b+"}),
        ("go_9x9", "d4 e5 pass", {".sgf": ";B[df];W[ee];B[]"}),
        ("hex,size=5", "a1 b2", {".sgf": "GM[11]"}),
        ("othello", "d3 c3", {".sgf": "GM[2]"}),
        ("black_hole,rows=2", "a1", {}),
    ],
)
def test_a_game_is_saved_in_every_format_that_it_has(ask, tmp_path, game, moves, formats):
    table = ask("new", game=game, text=moves)["table"]
    files = dict(ask("record", table=table, players=["a", "b"])["files"])
    assert list(files) == [".jsonl", *formats]
    for suffix, text in files.items():
        path = tmp_path / f"game{suffix}"
        path.write_text(text, encoding="utf-8")
        (record,) = read_games(path)
        assert len(record.actions) == len(moves.split())
        assert formats.get(suffix, "") in text


@pytest.mark.parametrize("kind", ["puct", "gumbel", "policy"])
def test_an_agent_that_comes_with_azjax_plays_and_is_looked_into(ask, kind):
    table = ask("new", game="crosshair")["table"]
    agent = {"kind": kind, "run": "agent:crosshair", "step": None, "simulations": 8}
    assert len(ask("reply", table=table, agent=agent)["moves"]) == 1
    seen = ask("search", table=table, agent=agent, simulations=4)
    assert sum(move["visits"] for move in seen["moves"]) == 4


def test_an_agent_of_another_game_is_refused(client, table):
    agent = {"kind": "puct", "run": "agent:crosshair"}
    assert "agent:crosshair plays crosshair" in refused(client, "reply", table=table, agent=agent)
    strange = {"kind": "puct", "run": "agent:../crosshair"}
    assert "which is not one of those found" in refused(client, "reply", table=table, agent=strange)


def test_the_oldest_table_makes_room(client, ask, table):
    for _ in range(MOST_TABLES):
        ask("new", game="tic_tac_toe")
    assert "no longer here" in refused(client, "view", table=table)


def test_runs_are_listed_and_drawn(ask):
    (run,) = ask("runs")["runs"]
    assert (run["name"], run["step"], run["steps"], run["score"]) == ("small", 20, 20, "70% against random")
    for axis in ("games", "minutes", "step"):
        charts = ask("curves", runs=["small"], axis=axis)["charts"]
        assert len(charts) == 5 and all("<svg" in chart for chart in charts)
    assert "Elo above random" in charts[0]


def test_steps_in_which_no_game_ended_are_one_point_of_a_curve(strange):
    client, run = strange
    rows = [json.loads(line) for line in run.metrics_path.read_text(encoding="utf-8").splitlines()]
    more = [rows[1] | {"step": step, "games": games, "value_loss": 0.5} for step, games in ((3, 4), (4, 4), (5, 9))]
    run.metrics_path.write_text("".join(json.dumps(row) + "\n" for row in [*rows, *more]), encoding="utf-8")
    for axis, points in (("games", 3), ("step", 5)):
        charts = client.post("/api/curves", json={"runs": ["strange"], "axis": axis}).json()["charts"]
        (plies,) = [
            re.findall(r'<polyline points="([^"]*)"', chart)[0] for chart in charts if "Plies a second" in chart
        ]
        assert len(plies.split()) == points


def test_the_curves_of_a_run_that_is_not_there(client):
    assert "not one of those found" in refused(client, "curves", runs=["../../etc"])


def test_games_of_a_run_are_replayed(client, ask):
    (file,) = ask("games", run="small")["files"]
    assert file["file"] == "step_20-vs-random"
    won, _ = ask("games", run="small", file=file["file"])["games"]
    assert won == {"players": ["step 20", "random"], "plies": 5, "returns": [1.0, -1.0]}
    view = ask("replay", run="small", file=file["file"], number=0)
    assert (view["ply"], view["plies"], view["result"]) == (0, 5, "first player won")
    assert "event 2" in refused(client, "replay", run="small", file=file["file"], number=1)
    assert "not one of the run's games" in refused(client, "games", run="small", file="../config")


def row(step, games):
    counts = {"plies": 8, "simulations": 16, "seconds": 1.0, "plies_per_second": 9.0}
    return json.dumps({"step": step, "games": games} | counts) + "\n"


def test_a_log_grows_and_is_read_on(tmp_path):
    from azjax.rundir import RunDirectory
    from azjax.web.runs import RunLog

    log = RunLog(RunDirectory(tmp_path))
    log.update()
    path = tmp_path / "metrics.jsonl"
    path.write_text(row(1, 2) + '{"step": 2, "ga', encoding="utf-8")
    log.update()
    assert [row["step"] for row in log.steps] == [1]
    path.write_text(row(1, 2) + row(2, 4), encoding="utf-8")
    log.update()
    assert [row["step"] for row in log.steps] == [1, 2]
    path.write_text(row(1, 3), encoding="utf-8")  # the run was resumed
    log.update()
    assert [row["games"] for row in log.steps] == [3]
    longer = tmp_path / "metrics.jsonl.new"
    longer.write_text("".join(row(step, 10 * step) for step in range(1, 9)), encoding="utf-8")
    longer.replace(path)  # resumed again, and grown past what was read
    log.update()
    assert [row["games"] for row in log.steps] == [10 * step for step in range(1, 9)]


def test_a_line_rolls_dice_that_a_record_repeats():
    game = envs.make("backgammon")
    line = Line(game, seed=1)
    rng = np.random.default_rng(0)
    for _ in range(6):
        line.play(int(rng.choice(line.legal)))
    record = line.record(("a", "b"))
    again = Line(game, seed=5, events=record.actions)
    assert again.record(("a", "b")) == record and again.names() == line.names()


def test_a_line_from_a_position_of_its_own_is_no_record():
    game = envs.make("tic_tac_toe")
    line = Line(game, start=read_line(game, "b2").state)
    with pytest.raises(ValueError, match="from a position of its own"):
        line.record(("a", "b"))


DAMAGED = [
    b"null\n",
    b"[1]\n",
    b'{"a": 1}\n',
    b'{"step": "x"}\n',
    b'{"step": 3, "games": NaN, "plies": 1, "simulations": 1, "seconds": 1, "plies_per_second": 1}\n',
    b'{"step": 3, "games": 1e999, "plies": 1, "simulations": 1, "seconds": 1, "plies_per_second": 1}\n',
    b'{"step": 3, "games": 5}\n',
    b'{"step": 3, "evaluation": {"score": 1}}\n',
    b'{"step": 3, "evaluation": 7}\n',
    b"\xff\xfe\n",
    b"[" * 100_000 + b"\n",
    b'{"step": 3, "ga\n',
]


@pytest.mark.parametrize("line", DAMAGED, ids=range(len(DAMAGED)))
def test_a_damaged_line_of_a_log_is_told_of_and_the_others_are_drawn(strange, line):
    client, run = strange
    lines = run.metrics_path.read_bytes().splitlines(keepends=True)
    run.metrics_path.write_bytes(lines[0] + line + lines[1])
    (listed,) = client.post("/api/runs", json={}).json()["runs"]
    assert (listed["step"], listed["note"]) == (2, "1 damaged line in metrics.jsonl")
    charts = client.post("/api/curves", json={"runs": ["strange"], "axis": "games"}).json()["charts"]
    assert len(charts) == 5


@pytest.mark.parametrize(
    ("lock", "state"),
    [
        (b"", "stopped"),
        (b"\xff" * 100, "stopped"),
        (f"process {os.getpid()} on {socket.gethostname()}\n".encode(), "training"),
        (f"process 999999999 on {socket.gethostname()}\n".encode(), "stopped"),
        (b"process 1 on another-host\n", ""),
    ],
    ids=["empty", "noise", "alive", "gone", "elsewhere"],
)
def test_a_run_is_trained_while_its_process_lives(strange, lock, state):
    client, run = strange
    run.lock_path.write_bytes(lock)
    assert client.post("/api/runs", json={}).json()["runs"][0]["state"] == state
    run.report_path.write_text("Done.", encoding="utf-8")
    assert client.post("/api/runs", json={}).json()["runs"][0]["state"] == "finished"


@pytest.mark.parametrize("text", ["[", "[" * 100_000, "{}", '{"players": [3]}', '{"players": 3}', "[1]", "null"])
def test_damaged_ratings_are_told_of(strange, text):
    client, run = strange
    run.ratings_path.write_text(text, encoding="utf-8")
    (listed,) = client.post("/api/runs", json={}).json()["runs"]
    assert (listed["ratings"], listed["note"]) == ([], "ratings.json is damaged")


def test_ratings_are_listed(strange):
    client, run = strange
    player = {"name": "random", "elo": 0.0, "ci95": [None, None], "games": 2, "score": 0.5}
    run.ratings_path.write_text(json.dumps({"players": [player]}), encoding="utf-8")
    (listed,) = client.post("/api/runs", json={}).json()["runs"]
    assert (listed["ratings"], listed["note"]) == ([player], "")


@pytest.mark.parametrize("text", ["[" * 100_000, '{"game": ' * 100_000, "[", "{}"])
def test_a_run_whose_configuration_is_damaged_is_listed_and_no_more(strange, text):
    client, run = strange
    run.config_path.write_text(text, encoding="utf-8")
    assert [
        found["name"] for found in client.post("/api/start", json={}).json()["runs"] if found["name"] == "strange"
    ] == []
    (listed,) = client.post("/api/runs", json={}).json()["runs"]
    assert str(run.config_path) in listed["fault"] or "config" in listed["fault"]
    table = client.post("/api/new", json={"game": "tic_tac_toe"}).json()["table"]
    agent = {"kind": "puct", "run": "strange", "simulations": 4}
    assert "config" in refused(client, "reply", table=table, agent=agent)


def as_of(run, **fields):
    """Writes a run's configuration with other fields."""
    config = json.loads(run.config_path.read_text(encoding="utf-8"))
    run.config_path.write_text(json.dumps(config | fields), encoding="utf-8")


@pytest.mark.parametrize("options", ["", ",max_plies=8"])
def test_code_that_only_a_run_names_is_never_run(strange, tmp_path, options, capsys):
    client, run = strange
    mark, path = tmp_path / "it ran", tmp_path / "evil.py"
    path.write_text(
        f"import pathlib\npathlib.Path({str(mark)!r}).touch()\n"
        "from envs.tic_tac_toe import TicTacToe\nGAME = TicTacToe()\n",
        encoding="utf-8",
    )
    word = f"{path}:GAME{options}"
    as_of(run, game=word)
    run.games_path.mkdir()
    game = {"format": 1, "game": "tic_tac_toe", "players": ["a", "b"], "actions": [0], "returns": None}
    (run.games_path / "kept.jsonl").write_text(json.dumps(game | {"end": "unfinished"}) + "\n", encoding="utf-8")

    there = client.post("/api/start", json={}).json()
    assert word not in there["games"] and "strange" not in [found["name"] for found in there["runs"]]
    (listed,) = client.post("/api/runs", json={}).json()["runs"]
    assert listed["note"] == f"not opened: its game runs code; azjax serve --game {word} if you trust it"
    assert "one of your own: azjax serve --game" in refused(client, "new", game=word)
    table = client.post("/api/new", json={"game": "tic_tac_toe"}).json()["table"]
    agent = {"kind": "puct", "run": "strange", "simulations": 4}
    for question in ("reply", "search"):
        assert "not opened: its game runs code" in refused(client, question, table=table, agent=agent)
    assert "not opened: its game runs code" in refused(client, "replay", run="strange", file="kept", number=0)
    assert not mark.exists()

    named = Roster(run.path.parent, games=(f"{path}:GAME",))
    assert mark.exists() is False and named.closed() == {}
    client = TestClient(make_app(named), base_url="http://127.0.0.1:8765")
    table = client.post("/api/new", json={"game": word}).json()["table"]
    assert mark.exists()
    assert len(client.post("/api/reply", json={"table": table, "agent": agent}).json()["moves"]) == 1


def test_a_network_that_only_a_run_names_is_never_imported(strange, tmp_path, monkeypatch):
    client, run = strange
    (tmp_path / "evil_network_of_a_test.py").write_text("open('it ran', 'w')\nNet = None\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    as_of(run, network={"kind": "evil_network_of_a_test:Net"})
    table = client.post("/api/new", json={"game": "tic_tac_toe"}).json()["table"]
    agent = {"kind": "puct", "run": "strange", "simulations": 4}
    why = f"not opened: its network runs code, evil_network_of_a_test:Net; azjax serve --run {run.path} if you trust it"
    assert why in refused(client, "reply", table=table, agent=agent)
    assert Roster(run.path.parent).closed() == {"strange": why} and Roster(run.path.parent, (run.path,)).closed() == {}
    assert not (tmp_path / "it ran").exists()


def test_games_of_ones_own_are_offered_when_named(tmp_path, runs_folder):
    path = tmp_path / "mine.py"
    path.write_text("from envs.tic_tac_toe import TicTacToe\nGAME = TicTacToe()\n", encoding="utf-8")
    word = f"{path}:GAME"
    roster = Roster(runs_folder, games=(word,))
    assert word in roster.described()["games"] and roster.game(word).id == "tic_tac_toe"


def test_scripts_and_page_agree_on_the_questions(client):
    asked = set()
    for name in ("main.js", "play.js", "runs.js"):
        asked |= set(re.findall(r'ask\("(\w+)"', client.get(f"/{name}").text))
        asked |= set(re.findall(r'act\("(\w+)"', client.get(f"/{name}").text))
    assert len(asked) == 14
    for name in asked:
        answer = client.post(f"/api/{name}", content=json.dumps({}), headers={"content-type": "application/json"})
        assert answer.status_code in (200, 400), name
