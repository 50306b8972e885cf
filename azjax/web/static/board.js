// The board: zones that are chosen one after the other until one legal move is left.
import { byId, draw, make } from "./net.js";

const STEPS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

export class Board {
  constructor(element, play) {
    this.element = element;
    this.play = play;
    this.legal = [];
    element.addEventListener("click", (event) => this.chosen(event.target.closest(".zone")));
    element.addEventListener("keydown", (event) => this.key(event));
  }

  show(svg, legal) {
    const focused = document.activeElement?.closest?.(".zone")?.dataset.zone;
    draw(this.element, svg);
    this.legal = legal;
    this.from = null;
    this.zones = [...this.element.querySelectorAll(".zone")];
    const starts = new Set(legal.map(([, , path]) => path[0]));
    for (const zone of this.zones) {
      const can = starts.has(zone.dataset.zone);
      zone.classList.toggle("can", can);
      zone.setAttribute("role", "button");
      zone.setAttribute("aria-label", zone.dataset.zone + (can ? "" : ", not to be chosen"));
      zone.setAttribute("tabindex", "-1");
    }
    const entry = this.zones.find((zone) => zone.dataset.zone === focused) || this.zones.find((zone) => starts.has(zone.dataset.zone));
    entry?.setAttribute("tabindex", "0");
    if (focused) entry?.focus();
    byId("choices").hidden = true;
    const buttons = legal.filter(([, , path]) => path.length === 0).map((move) => this.button(move));
    byId("buttons").replaceChildren(...buttons);
  }

  button([action, name]) {
    return make("button", { textContent: name, onclick: () => this.play(action) });
  }

  chosen(zone) {
    if (!zone) return;
    const name = zone.dataset.zone;
    const whole = this.from === null ? [name] : [this.from, name];
    const now = this.legal.filter(([, , path]) => path.length === whole.length && path.every((part, i) => part === whole[i]));
    const later = this.legal.filter(([, , path]) => path.length > whole.length && whole.every((part, i) => part === path[i]));
    this.mark(null, []);
    if (now.length === 1 && later.length === 0) return void this.play(now[0][0]);
    if (now.length > 1) return this.offer(now);
    if (later.length > 0) return this.mark(name, later.map(([, , path]) => path[1]));
    const begun = this.from;
    this.from = null;
    if (begun !== null && begun !== name) this.chosen(zone);
  }

  mark(from, targets) {
    if (from !== null) this.from = from;
    for (const zone of this.zones) {
      zone.classList.toggle("from", from !== null && zone.dataset.zone === from);
      zone.classList.toggle("to", targets.includes(zone.dataset.zone));
    }
  }

  offer(moves) {
    this.from = null;
    const choices = byId("choices");
    choices.replaceChildren("Which? ", ...moves.map((move) => this.button(move)));
    choices.hidden = false;
    choices.querySelector("button").focus();
  }

  key(event) {
    const zone = event.target.closest(".zone");
    if (!zone) return;
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      this.chosen(zone);
    } else if (event.key === "Escape") {
      this.from = null;
      this.mark(null, []);
    } else if (STEPS[event.key]) {
      event.preventDefault();
      this.walk(zone, STEPS[event.key]);
    }
  }

  // To the nearest zone that lies in the direction, one a little aside counting as farther.
  walk(zone, [right, down]) {
    const middle = (of) => {
      const box = of.getBoundingClientRect();
      return [box.x + box.width / 2, box.y + box.height / 2];
    };
    const [x, y] = middle(zone);
    let best = null;
    let least = Infinity;
    for (const other of this.zones) {
      const [dx, dy] = middle(other).map((at, i) => at - [x, y][i]);
      const along = dx * right + dy * down;
      const aside = Math.abs(dx * down) + Math.abs(dy * right);
      if (other !== zone && along > 1 && aside <= 2 * along && along + 2.5 * aside < least) {
        least = along + 2.5 * aside;
        best = other;
      }
    }
    if (!best) return;
    zone.setAttribute("tabindex", "-1");
    best.setAttribute("tabindex", "0");
    best.focus();
  }
}
