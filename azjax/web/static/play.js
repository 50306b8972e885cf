// The first tab: a game, who plays it, and what a search thinks of it.
import { Board } from "./board.js";
import { Seat } from "./seat.js";
import { ask, byId, draw, fill, make, rows, say } from "./net.js";

const names = ["First", "Second"];
let view = null; // the position shown
let there = { games: [], runs: [], kinds: [] };
let busy = false;
let paused = false;
let seed = 0;

const board = new Board(byId("board"), (action) => act("move", { action }), (words) => (words ? say(words) : tell()));
const seats = names.map((name, number) => new Seat(byId(`seat-${number}`), name, true, () => go()));
const look = new Seat(byId("seat-look"), "Look with", false, () => {});

export async function begin() {
  there = await ask("start");
  fill(byId("game"), there.games.map((game) => [game, game]), there.runs.find((run) => !run.name.startsWith("agent:"))?.game ?? "crosshair");
  await newGame();
}

// One request at a time; what goes wrong is said.
async function during(what, task) {
  if (busy) return;
  busy = true;
  document.body.classList.add("thinking");
  say(what);
  try {
    await task();
    tell();
  } catch (fault) {
    say(fault.message, true);
    paused = true;
  } finally {
    busy = false;
    document.body.classList.remove("thinking");
    controls();
  }
}

function tell() {
  if (!view) return;
  if (view.over) say(`Game over: ${view.result}`);
  else say(`${names[view.mover]} player to move${seats[view.mover].isPerson ? "" : ` (${seats[view.mover].title})`}`);
}

function word() {
  const options = byId("options").value.trim();
  return byId("game").value + (options ? `,${options}` : "");
}

export async function newGame(text = "") {
  await during("setting up", async () => {
    seed = Math.floor(Math.random() * 2 ** 30);
    const made = await ask("new", { game: word(), text, seed });
    there = await ask("start");
    sit(made);
    show(made);
  });
  await follow();
}

export function put(made) {
  byId("game").value = made.game;
  sit(made);
  paused = true;
  show(made);
  controls();
  say(`${made.seated.join(" against ")}: ▶ steps through it`);
}

function sit(made) {
  const runs = there.runs.filter((run) => run.game === made.game && run.steps.length > 0);
  seats[0].offer(there.kinds, runs, made.players, "person");
  seats[1].offer(there.kinds, runs, made.players, runs.length ? "puct" : "uct");
  look.offer(there.kinds, runs, []);
  draw(byId("rules"), made.rules);
  byId("legend").textContent = made.legend;
  byId("options").placeholder = made.options[0] ?? "none";
  byId("options").title = made.options.length ? `Options and their values now: ${made.options.join(", ")}` : "This game has no options";
  byId("text").placeholder = made.notation ? "a position, or moves" : "moves such as those in the list";
  clearSearch();
}

function show(now) {
  view = now;
  board.show(view.svg, mine() ? view.legal : []);
  const moves = view.moves.map((name, at) =>
    make("li", {}, make("button", { textContent: `${at + 1}. ${name}`, ariaCurrent: String(at + 1 === view.ply), onclick: () => visit(at + 1) }))
  );
  byId("moves").replaceChildren(...moves);
  const current = byId("moves").querySelector("[aria-current=true]");
  if (current) byId("moves").scrollTop = current.offsetTop - byId("moves").offsetTop - 40;
  controls();
}

function mine() {
  return view.ply === view.plies && !view.over && seats[view.mover].isPerson;
}

function controls() {
  if (!view) return;
  byId("first").disabled = byId("earlier").disabled = view.ply === 0;
  byId("later").disabled = byId("last").disabled = view.ply === view.plies;
  byId("undo").disabled = view.plies === 0;
  byId("pause").disabled = view.over || seats.every((seat) => seat.isPerson);
  byId("pause").textContent = paused ? "Go on" : "Pause";
  byId("typed").hidden = !mine();
}

async function act(name, fields) {
  await during("…", async () => {
    clearSearch(false);
    show(await ask(name, { table: view.table, ...fields }));
  });
  await follow();
}

async function visit(ply) {
  await during("…", async () => show(await ask("view", { table: view.table, ply })));
}

// Lets agents move until it is a person's turn, and searches where that is asked for.
async function follow() {
  if (busy || !view) return;
  if (byId("always").checked && !view.over && view.ply === view.plies) await search(100);
  if (view.over || paused || view.ply !== view.plies || seats[view.mover].isPerson) return controls();
  const seat = seats[view.mover];
  await during(`${names[view.mover]} player (${seat.title}) thinks`, async () => {
    show(await ask("reply", { table: view.table, agent: seat.agent, seed }));
    clearSearch(false);
  });
  if (seats.every((one) => !one.isPerson)) await new Promise((done) => setTimeout(done, 350));
  await follow();
}

function go() {
  if (!view) return;
  if (!busy) show(view);
  tell();
  follow();
}

async function undo() {
  const person = seats.findIndex((seat) => seat.isPerson);
  // Against an agent, back to one's own last decision.
  const alone = person >= 0 && !seats.every((seat) => seat.isPerson);
  const plies = alone && view.mover === person && view.plies > 1 ? 2 : 1;
  paused = paused || !seats.some((seat) => seat.isPerson);
  await act("back", { plies });
}

function clearSearch(all = true) {
  for (const id of ["candidates", "tree", "leaf"]) byId(id).replaceChildren();
  if (all) byId("curve").replaceChildren();
  byId("verdict").textContent = "";
  byId("told").textContent = "Press + 1.";
}

async function search(simulations, again = 0) {
  if (view.over) return;
  await during("searching", async () => {
    if (view.ply !== view.plies) show(await ask("view", { table: view.table }));
    const fields = { table: view.table, agent: look.agent, simulations, again, show: byId("show").value };
    const seen = await ask("search", fields);
    board.show(seen.svg, mine() ? view.legal : []);
    byId("verdict").textContent = `${seen.simulations} simulations: value ${seen.value.toFixed(3)} for the player to move, choice ${seen.choice}; expects ${seen.line.join(" ")}`;
    const prior = (move) => (move.prior === null ? [] : [`${(100 * move.prior).toFixed(1)} %`]); // rollouts have none
    rows(byId("candidates"), ["move", ...prior(seen.moves[0]).map(() => "prior"), "visits", "Q"],
      seen.moves.map((move) => [move.move, ...prior(move), move.visits, move.q === null ? "" : move.q.toFixed(3)]));
    draw(byId("tree"), seen.tree);
    if (seen.last) {
      byId("told").textContent = `Last simulation: ${seen.last.path.join(" → ")}; ${seen.last.words}. Backed up along the path: ${seen.last.backup.join(", ")}.`;
      draw(byId("leaf"), seen.last.svg);
    }
    draw(byId("curve"), (await ask("curve", { table: view.table })).svg);
  });
}

async function save() {
  await during("drawing", async () => {
    const made = await ask("record", { table: view.table, players: seats.map((seat) => seat.title) });
    const link = (name, type, content) =>
      make("a", { textContent: name, download: name, href: `data:${type};charset=utf-8,${encodeURIComponent(content)}` });
    const picture = make("div");
    draw(picture, made.svg);
    const files = made.files.map(([suffix, text]) => link(`game${suffix}`, suffix === ".jsonl" ? "application/json" : "text/plain", text));
    byId("saved").replaceChildren(...files, link("game.svg", "image/svg+xml", made.svg), picture);
  });
}

byId("new").onclick = () => {
  paused = false;
  newGame();
};
byId("game").onchange = () => {
  byId("options").value = "";
  paused = false;
  newGame();
};
byId("set").onclick = () => newGame(byId("text").value);
byId("save").onclick = save;
byId("typed").onsubmit = (event) => {
  event.preventDefault();
  const move = byId("move").value;
  byId("move").value = "";
  act("word", { move });
};
byId("undo").onclick = undo;
byId("pause").onclick = () => {
  paused = !paused;
  controls();
  if (!paused) (view.ply === view.plies ? Promise.resolve() : visit(view.plies)).then(follow);
};
byId("first").onclick = () => visit(0);
byId("earlier").onclick = () => visit(view.ply - 1);
byId("later").onclick = () => visit(view.ply + 1);
byId("last").onclick = () => visit(view.plies);
for (const simulations of [1, 10, 100]) byId(`step-${simulations}`).onclick = () => search(simulations);
byId("again").onclick = () => search(1, 1);

document.addEventListener("keydown", (event) => {
  if (byId("play").hidden || event.ctrlKey || event.metaKey || event.altKey) return;
  if (["INPUT", "TEXTAREA", "SELECT"].includes(event.target.tagName)) return;
  const button = { u: "undo", n: "new", p: "pause", s: "step-1", ",": "earlier", ".": "later" }[event.key];
  if (button && !byId(button).disabled) byId(button).click();
});
