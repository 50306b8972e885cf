// The second tab: runs side by side, live, and the games that they kept.
import { ask, byId, draw, fill, make, rows, say } from "./net.js";
import { put } from "./play.js";

const shown = new Set();
let runs = [];
let timer = null;
let updating = false;
let again = false;
let listed = "";

export async function open(visible) {
  clearInterval(timer);
  if (!visible) return;
  await update();
  if (byId("runs").hidden) return;
  timer = setInterval(() => byId("live").checked && update(), 3000);
}

// What is asked for while an update is under way is done after it.
async function update() {
  again = updating;
  if (updating) return;
  updating = true;
  try {
    runs = (await ask("runs")).runs;
    if (shown.size === 0 && runs.length) shown.add(runs[0].name);
    list();
    const chosen = runs.filter((run) => shown.has(run.name) && !run.fault).map((run) => run.name);
    const charts = chosen.length ? (await ask("curves", { runs: chosen.slice(0, 6), axis: byId("axis").value })).charts : [];
    byId("charts").replaceChildren(
      ...charts.map((svg) => {
        const box = make("div");
        draw(box, svg);
        return box;
      })
    );
    ratings();
    const before = byId("games-run").value;
    fill(byId("games-run"), runs.map((run) => [run.name, run.name]), before);
    await files(byId("games-run").value === before);
    if (!byId("runs").hidden) say(runs.length ? `${runs.length} ${runs.length === 1 ? "run" : "runs"}` : "no run in runs/ yet: azjax train GAME begins one");
  } catch (fault) {
    say(fault.message, true);
  } finally {
    updating = false;
  }
  if (again) await update();
}

function list() {
  const focused = document.activeElement?.dataset?.run;
  rows(byId("run-list"), ["run", "game", "step", "games", "time", "plies/s", "last match", ""],
    runs.map((run) => {
      const box = make("input", { type: "checkbox", checked: shown.has(run.name), onchange: () => toggle(run.name) });
      box.dataset.run = run.name;
      const label = make("label", {}, box, ` ${run.name}`);
      const note = (text, colSpan) => make("td", { textContent: text, colSpan, className: "note" });
      if (run.fault) return [label, note(run.fault, 7)];
      return [label, run.game, `${run.step} of ${run.steps}`, run.games, run.time, run.plies_per_second, run.score, note([run.state, run.note].filter(Boolean).join("; "), 1)];
    }));
  if (focused) document.querySelector(`[data-run="${CSS.escape(focused)}"]`)?.focus();
}

function toggle(name) {
  if (!shown.delete(name)) shown.add(name);
  update();
}

function ratings() {
  const tables = runs.filter((run) => shown.has(run.name) && run.ratings?.length).map((run) => {
    const table = make("table");
    rows(table, [run.name, "Elo", "95 % interval", "games", "score"], run.ratings.map((player) => [
      player.name, Math.round(player.elo), (player.ci95 ?? []).map((end) => (end === null ? "?" : Math.round(end))).join(" … "), player.games, `${(100 * player.score).toFixed(1)} %`,
    ]));
    return table;
  });
  byId("ratings").replaceChildren(...tables);
}

// The files of the chosen run; while it trains, new ones come, and those that changed are read again.
async function files(again = false) {
  const run = byId("games-run").value;
  const found = run ? (await ask("games", { run })).files : [];
  const key = JSON.stringify([run, found]);
  if (again && key === listed) return;
  listed = key;
  const before = again ? byId("games-file").value : "";
  fill(byId("games-file"), found.map((file) => [file.file, file.file]), before);
  await games();
}

async function games() {
  const run = byId("games-run").value;
  const file = byId("games-file").value;
  const found = file ? (await ask("games", { run, file })).games : [];
  if (run !== byId("games-run").value || file !== byId("games-file").value) return; // another was chosen meanwhile
  byId("games-list").replaceChildren(
    ...found.map((game, number) => {
      const result = game.returns === null ? "unfinished" : game.returns[0] > 0 ? "1–0" : game.returns[0] < 0 ? "0–1" : "½–½";
      const words = `${number + 1}. ${game.players.join(" – ")}: ${result}, ${game.plies} plies`;
      return make("li", {}, make("button", { textContent: words, onclick: () => replay(run, file, number) }));
    })
  );
}

async function replay(run, file, number) {
  try {
    const made = await ask("replay", { run, file, number });
    byId("tab-play").click();
    put(made);
  } catch (fault) {
    say(fault.message, true);
  }
}

byId("axis").onchange = update;
byId("games-run").onchange = () => files().catch((fault) => say(fault.message, true));
byId("games-file").onchange = () => games().catch((fault) => say(fault.message, true));
