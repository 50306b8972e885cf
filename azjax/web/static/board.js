// The board: zones that are chosen one after the other until one legal move is left.
import { byId, draw, make } from "./net.js";

const STEPS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

export class Board {
  // tell: says what was begun; without words, whose turn it is.
  constructor(element, play, tell) {
    this.element = element;
    this.play = play;
    this.tell = tell;
    this.legal = [];
    element.addEventListener("click", (event) => this.chosen(event.target.closest(".zone")));
    element.addEventListener("keydown", (event) => this.key(event));
    byId("choices").addEventListener("keydown", (event) => event.key === "Escape" && this.unchoose());
  }

  show(svg, legal) {
    const active = document.activeElement;
    // Whoever chose among several goes on where the choice arose.
    const focused = byId("choices").contains(active) ? this.asked : active?.closest?.(".zone")?.dataset.zone;
    draw(this.element, svg);
    this.legal = legal;
    this.from = null;
    this.zones = [...this.element.querySelectorAll(".zone")];
    const starts = new Set(legal.map(([, , path]) => path[0]));
    // Where few can be chosen they are lit, but not one's own pieces, which everyone finds.
    const places = legal.every(([, , path]) => path.length < 2);
    this.element.classList.toggle("few", places && 2 * starts.size <= this.zones.length);
    for (const zone of this.zones) {
      const can = starts.has(zone.dataset.zone);
      zone.classList.toggle("can", can);
      zone.setAttribute("role", "button");
      zone.setAttribute("aria-label", label(zone));
      zone.setAttribute("tabindex", "-1");
    }
    const entry = this.zones.find((zone) => zone.dataset.zone === focused) || this.zones.find((zone) => starts.has(zone.dataset.zone));
    entry?.setAttribute("tabindex", "0");
    if (focused) entry?.focus();
    byId("choices").hidden = true; // after the focus has left it
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
    if (now.length > 1) return this.offer(now, name);
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
      zone.setAttribute("aria-label", label(zone));
    }
    if (from === null) return;
    const places = [...new Set(targets)];
    // One line, even of a piece in hand: the board must not move away under a finger.
    this.tell(`${from} to ${places.length > 4 ? `one of ${places.length}` : places.join(", ")}? Escape chooses anew`);
  }

  offer(moves, name) {
    this.from = null;
    this.asked = name;
    const choices = byId("choices");
    choices.replaceChildren("Which? ", ...moves.map((move) => this.button(move)));
    choices.hidden = false;
    choices.querySelector("button").focus();
  }

  unchoose() {
    this.from = null;
    this.mark(null, []);
    if (!byId("choices").hidden) {
      this.zones.find((zone) => zone.dataset.zone === this.asked)?.focus();
      byId("choices").hidden = true;
    }
    this.tell();
  }

  key(event) {
    const zone = event.target.closest(".zone");
    if (!zone) return;
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      this.chosen(zone);
    } else if (event.key === "Escape") {
      this.unchoose();
    } else if (event.key === "PageDown" || event.key === "PageUp") {
      event.preventDefault();
      this.leap(zone, event.key === "PageDown" ? 1 : -1);
    } else if (STEPS[event.key]) {
      event.preventDefault();
      this.walk(zone, STEPS[event.key]);
    }
  }

  // To the next zone, or the one before, that can be chosen now.
  leap(zone, step) {
    const kind = this.from === null ? "can" : "to";
    const possible = this.zones.filter((other) => other === zone || other.classList.contains(kind));
    const next = possible[(possible.indexOf(zone) + step + possible.length) % possible.length];
    this.enter(zone, next);
  }

  // To the nearest zone that lies in the direction, one a little aside counting as farther. What is beside counts as
  // beside by its edges too: backgammon's tray is as high as two points.
  walk(zone, [right, down]) {
    const place = (of) => {
      const box = of.getBoundingClientRect();
      return { x: box.x + box.width / 2, y: box.y + box.height / 2, across: right ? box.height : box.width };
    };
    const here = place(zone);
    let best = null;
    let least = Infinity;
    for (const other of this.zones) {
      const there = place(other);
      const along = (there.x - here.x) * right + (there.y - here.y) * down;
      const aside = Math.abs(right ? there.y - here.y : there.x - here.x);
      const gap = Math.max(0, aside - (here.across + there.across) / 2);
      const distance = along + aside + 1.5 * gap;
      if (other !== zone && along > 1 && gap <= 2 * along && distance < least) {
        least = distance;
        best = other;
      }
    }
    if (best) this.enter(zone, best);
  }

  enter(before, zone) {
    before.setAttribute("tabindex", "-1");
    zone.setAttribute("tabindex", "0");
    zone.focus();
  }
}

function label(zone) {
  const words = { from: "chosen", to: "possible", can: "" };
  const kind = Object.keys(words).find((name) => zone.classList.contains(name));
  const said = kind === undefined ? "not to be chosen" : words[kind];
  return zone.dataset.zone + (said ? `, ${said}` : "");
}
