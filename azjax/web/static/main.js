// Tabs, and the start.
import { begin } from "./play.js";
import { open } from "./runs.js";
import { byId, say } from "./net.js";

const tabs = ["play", "runs"];
for (const name of tabs) {
  byId(`tab-${name}`).onclick = () => {
    for (const other of tabs) {
      byId(other).hidden = other !== name;
      byId(`tab-${other}`).setAttribute("aria-selected", String(other === name));
    }
    open(name === "runs");
  };
}
begin()
  .catch((fault) => say(fault.message, true))
  .finally(() => (window.azjaxReady = true));
