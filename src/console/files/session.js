// A session that began with a one-time link. The secret is taken out of the address at once; the token stays in memory.
import { setToken } from "./api.js";

const LINK = "#link=";
let token = "", renewing = 0;

async function post(name, secret) {
  const answer = await fetch("/console/session/" + name, { method: "POST", headers: { "Content-Type": "application/octet-stream" }, body: secret, cache: "no-store", redirect: "error" });
  const body = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Error(body.message || "HTTP " + answer.status);
  return body;
}

// While the page is open: thrice in the life of a session, so that one lost call ends nothing.
function renewEvery(seconds) {
  clearInterval(renewing);
  renewing = setInterval(() => post("renew", token).catch(() => {}), (1000 * seconds) / 3);
}

// Exchanges the link in the address, if there is one. The reason when that fails, else "".
export async function openLink() {
  if (!location.hash.startsWith(LINK)) return "";
  const secret = location.hash.slice(LINK.length);
  history.replaceState(null, "", location.pathname);
  try {
    const session = await post("open", secret);
    token = session.token;
    setToken(token);
    renewEvery(session.seconds);
    return "";
  } catch (error) {
    return "The link does not sign in: " + error.message + ". Make a new one with `keelson console`.";
  }
}

export function hasSession() { return token !== ""; }

export async function endSession() {
  clearInterval(renewing);
  const ended = token;
  token = "";
  setToken("");
  await post("end", ended).catch(() => {});
}
