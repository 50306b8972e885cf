// Questions to the server, and elements from its answers.

export async function ask(name, fields = {}) {
  const answer = await fetch(`/api/${name}`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(fields),
  });
  let said;
  try {
    said = await answer.json();
  } catch {
    throw new Error(`the server failed (${answer.status})`);
  }
  if (!answer.ok) throw new Error(said.error);
  return said;
}

export const byId = (id) => document.getElementById(id);

export function say(words, fault = false) {
  const status = byId("status");
  status.textContent = words;
  status.classList.toggle("fault", fault);
}

export function make(tag, properties = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

export function fill(select, values, chosen) {
  select.replaceChildren(...values.map(([value, label]) => make("option", { value, textContent: label })));
  if (values.some(([value]) => String(value) === String(chosen))) select.value = chosen;
}

// Drawings come from this page's own server.
export function draw(element, svg) {
  element.innerHTML = svg || "";
}

export function rows(table, heads, lines) {
  const cell = (tag, value) => {
    if (value instanceof HTMLTableCellElement) return value;
    return value instanceof Node ? make(tag, {}, value) : make(tag, { textContent: value ?? "" });
  };
  const cells = (tag, values) => make("tr", {}, ...values.map((value) => cell(tag, value)));
  table.replaceChildren(cells("th", heads), ...lines.map((line) => cells("td", line)));
}
