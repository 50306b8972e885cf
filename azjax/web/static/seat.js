// Who sits where: a person, or an agent of some kind, run and strength.
import { fill, make } from "./net.js";

const TITLES = { person: "you", puct: "network, PUCT", gumbel: "network, Gumbel", policy: "network alone", uct: "rollouts, UCT", random: "random" };
const STRENGTHS = [1, 4, 16, 50, 100, 200, 400, 800, 1600];
const NEEDS_RUN = ["puct", "gumbel", "policy"];
const GUEST = "player:"; // before the word of a player whom the server's command line names

export class Seat {
  constructor(element, title, people, changed) {
    this.people = people;
    this.kind = make("select", { ariaLabel: `${title}: who` });
    this.run = make("select", { ariaLabel: `${title}: run` });
    this.step = make("select", { ariaLabel: `${title}: checkpoint` });
    this.simulations = make("select", { ariaLabel: `${title}: simulations` });
    fill(this.simulations, STRENGTHS.map((number) => [number, `${number} simulations`]), 100);
    element.replaceChildren(make("b", { textContent: title }), this.kind, this.run, this.step, this.simulations);
    this.kind.onchange = () => this.arrange(changed);
    this.run.onchange = () => this.arrange(changed);
    this.step.onchange = this.simulations.onchange = () => changed();
  }

  // Offers what this game has; keeps what was chosen where that is still possible.
  offer(kinds, runs, players, preferred) {
    this.runs = runs;
    const possible = kinds.filter((kind) => runs.length > 0 || !NEEDS_RUN.includes(kind));
    const guests = players.map((word) => GUEST + word);
    const words = this.people ? ["person", ...possible, ...guests] : possible.filter((kind) => kind !== "random");
    const kept = words.includes(this.kind.value) ? this.kind.value : (preferred ?? words[0]);
    fill(this.kind, words.map((kind) => [kind, titleOf(kind)]), kept);
    fill(this.run, runs.map((run) => [run.name, run.name]), this.run.value);
    this.arrange(() => {});
  }

  arrange(changed) {
    const run = this.runs.find((one) => one.name === this.run.value);
    this.run.hidden = this.step.hidden = !NEEDS_RUN.includes(this.kind.value);
    this.simulations.hidden = ["person", "policy", "random"].includes(this.kind.value) || this.kind.value.startsWith(GUEST);
    const steps = [...(run?.steps ?? [])].reverse();
    if (steps.length < 2) this.step.hidden = true;
    fill(this.step, [["", "newest"], ...steps.map((step) => [step, `step ${step}`])], this.step.value);
    changed();
  }

  get isPerson() {
    return this.kind.value === "person";
  }

  get title() {
    return titleOf(this.kind.value) + (this.run.hidden ? "" : ` ${this.run.value}`);
  }

  get agent() {
    if (this.kind.value.startsWith(GUEST)) return { kind: "player", word: this.kind.value.slice(GUEST.length) };
    const agent = { kind: this.kind.value, simulations: Number(this.simulations.value) };
    if (!this.run.hidden) {
      agent.run = this.run.value;
      agent.step = this.step.value === "" ? null : Number(this.step.value);
    }
    return agent;
  }
}

function titleOf(kind) {
  return TITLES[kind] ?? kind.slice(GUEST.length);
}
