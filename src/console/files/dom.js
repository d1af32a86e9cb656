// Elements without innerHTML: what the server sends is only ever text.
export function el(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (value !== undefined && value !== null && value !== false) element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

export const bytes = (value) => (value < 1e6 ? (value / 1e3).toFixed(1) + " kB" : value < 1e9 ? (value / 1e6).toFixed(1) + " MB" : (value / 1e9).toFixed(2) + " GB");

export function show(...children) { document.getElementById("main").replaceChildren(...children); }

// False while the box "Read only" is checked: nothing that writes is offered.
export function mayWrite() { return !document.getElementById("readonly").checked; }

// Whether keys are text for what has the focus.
export function isTyping() {
  const { tagName, type } = document.activeElement;
  return /^(TEXTAREA|SELECT)$/.test(tagName) || (tagName === "INPUT" && type !== "checkbox") || document.activeElement.getAttribute("role") === "textbox";
}

const STATUS_MILLISECONDS = 8000;
export function tell(text) {
  const line = el("p", {}, text);
  document.getElementById("status").append(line);
  setTimeout(() => line.remove(), STATUS_MILLISECONDS);
}

// Plain words and the next step for an error of the API.
export function explain(error) {
  if (error.status === 401) return "Not signed in: use a client certificate or paste a token.";
  if (error.status === 403) return "Not permitted: " + error.message;
  if (error.status === 404) return "Not found: " + error.message;
  if (error.status === 409) return "Conflict: " + error.message;
  if (error.status === undefined) return "The server cannot be reached: " + error.message;
  return error.message;
}
