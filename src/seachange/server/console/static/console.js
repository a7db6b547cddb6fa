// The console: log-in, one page at a time by the part of the address behind #, live updates.

import { changesPage, loadPage, loginPage, nodesPage, planPage, records, shades, tablesPage } from "./pages.js";

const SAMPLES_MAX = 600;
const PLAIN_REFRESH_MS = 5000;
const content = document.getElementById("content");

const state = {
  me: null,
  problem: null,
  jobs: [],
  stages: [],
  load: [],
  changes: [],
  statements: [],
  statementsAt: 0,
  plan: { text: "", problem: null, explained: null, runs: [] },
};

class Refused extends Error {
  constructor(status, answer) {
    super([answer.sqlstate ? `${answer.sqlstate}: ` : "", answer.message ?? "the server does not answer", answer.detail ? `. ${answer.detail}` : "", answer.hint ? ` ${answer.hint}` : ""].join(""));
    this.status = status;
  }
}

async function ask(path, body) {
  const options = body === undefined ? {} : {
    method: "POST",
    headers: { "Content-Type": "application/json", "X-Seachange-Proof": state.me?.proof ?? "" },
    body: JSON.stringify(body),
  };
  const response = await fetch(`/console/api/${path}`, options);
  const answer = await response.json().catch(() => ({}));
  if (response.status === 401 && state.me) leave("The log-in has ended.");
  if (!response.ok) throw new Refused(response.status, answer);
  return answer;
}

async function view(name, parameters = {}) {
  const query = new URLSearchParams(parameters).toString();
  return records(await ask(`view/${name}${query ? `?${query}` : ""}`));
}

function say(text) {
  const line = document.createElement("p");
  line.textContent = text;
  document.getElementById("status").append(line);
  setTimeout(() => line.remove(), 6000);
}

// Log-in.

async function login(given) {
  try {
    await ask("login", given);
    state.me = await ask("me");
    state.problem = null;
    begin();
  } catch (problem) {
    state.problem = problem.message;
    show();
  }
}

function leave(reason) {
  state.me = null;
  state.problem = reason;
  stream?.close();
  show();
}

document.getElementById("logout").addEventListener("click", async () => {
  await ask("logout", {}).catch(() => {});
  leave(null);
});

// Changes that need a second thought.

function confirmed(question, statement) {
  const dialog = document.getElementById("confirm");
  document.getElementById("confirm-text").textContent = question;
  const shown = document.getElementById("confirm-statement");
  shown.textContent = statement ?? "";
  shown.hidden = !statement;
  dialog.showModal();
  return new Promise((resolve) => {
    const end = (answer) => () => { dialog.close(); resolve(answer); };
    document.getElementById("confirm-yes").onclick = end(true);
    document.getElementById("confirm-no").onclick = end(false);
    dialog.oncancel = end(false);
  });
}

async function act(action, id, question, statement) {
  if (!(await confirmed(question, statement))) return;
  try {
    await ask(`action/${action}`, { id });
    say("Done.");
  } catch (problem) {
    say(problem.message);
  }
  await show();
}

async function explain(text) {
  state.plan.text = text;
  state.plan.problem = state.plan.explained = null;
  try {
    state.plan.explained = await ask("explain", { text });
  } catch (problem) {
    state.plan.problem = problem.message;
  }
  await show();
}

async function run(text) {
  if (!(await confirmed("Run this change now?", text))) return;
  try {
    const started = await ask("run", { text });
    say(started.outcome ?? "The change runs: see Schema changes.");
  } catch (problem) {
    say(problem.message);
  }
  await show();
}

function plan(text) {
  state.plan.text = text;
  location.hash = "#plan";
  explain(text);
}

// Pages.

const PAGES = {
  changes: async () => {
    state.changes = await view("changes");
    return changesPage(state, { act, plan });
  },
  plan: async () => {
    state.plan.runs = (await ask("runs")).runs;
    return planPage(state.plan, { explain, run });
  },
  tables: async (schema, name) => {
    const tables = await view("tables");
    if (!name) return tablesPage(tables, null);
    const of = { schema, table: name };
    const [columns, elements, layouts, parts, changes] = await Promise.all([
      view("columns", of), view("elements", of), view("layouts", of), view("parts", of), view("changes"),
    ]);
    return tablesPage(tables, { schema, name, columns, elements, layouts, parts, changes });
  },
  nodes: async () => {
    const names = ["nodes", "sessions", "waits", "leases", "events"];
    const found = await Promise.all(names.map((name) => view(name)));
    return nodesPage(Object.fromEntries(names.map((name, index) => [name, found[index]])), act);
  },
  load: async () => {
    // The page is drawn again with each sample; its statements change less often.
    if (Date.now() - state.statementsAt > PLAIN_REFRESH_MS) {
      state.statements = await view("statements");
      state.statementsAt = Date.now();
    }
    return loadPage(state.load, shades(state.stages, state.jobs), state.statements, state.jobs);
  },
};

function address() {
  const [page, ...rest] = location.hash.slice(1).split("/").map(decodeURIComponent);
  return [page in PAGES ? page : "changes", ...rest];
}

let shownPage = null;
let turn = 0;

async function show() {
  const mine = ++turn;
  document.getElementById("banner").hidden = !state.me;
  if (!state.me) {
    content.replaceChildren(...loginPage(state.problem, login));
    shownPage = null;
    return;
  }
  document.getElementById("who").textContent = `${state.me.user} on ${state.me.database}, node ${state.me.node}`;
  const [page, ...rest] = address();
  let children;
  try {
    children = await PAGES[page](...rest);
  } catch (problem) {
    if (!state.me) return;
    const line = document.createElement("p");
    line.className = "problem";
    line.textContent = problem.message;
    children = [line];
  }
  // A page that was asked for later is shown already.
  if (mine !== turn) return;
  place(page, children);
}

// What the reader was doing survives: the focus, and the text that is being written.
function place(page, children) {
  const isNew = shownPage !== location.hash;
  const focused = document.activeElement?.textContent;
  const wide = [...content.querySelectorAll(".wide")].map((box) => [box.getAttribute("aria-label"), box.scrollLeft]);
  content.replaceChildren(...children);
  for (const link of document.querySelectorAll("nav a")) {
    if (link.hash === `#${page}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.title = `${content.querySelector("h1")?.textContent ?? "Console"} – Seachange`;
  for (const box of content.querySelectorAll(".wide")) {
    box.scrollLeft = wide.find(([label]) => label === box.getAttribute("aria-label"))?.[1] ?? 0;
  }
  if (isNew && shownPage !== null) {
    content.focus({ preventScroll: true });
    scrollTo(0, 0);
  }
  else if (focused) [...content.querySelectorAll("button")].find((one) => one.textContent === focused)?.focus();
  shownPage = location.hash;
}

// Live updates.

let stream = null;

function listen() {
  stream?.close();
  stream = new EventSource("/console/api/events");
  stream.addEventListener("views", ({ data }) => {
    const found = JSON.parse(data);
    state.jobs = records(found.jobs);
    state.stages = records(found.running_stages);
    if (["changes", "load"].includes(address()[0]) && !document.querySelector("dialog[open]")) show();
  });
  stream.addEventListener("load", ({ data }) => {
    const known = state.load[state.load.length - 1]?.at ?? 0;
    state.load = [...state.load, ...JSON.parse(data).filter((sample) => sample.at > known)].slice(-SAMPLES_MAX);
    if (address()[0] === "load") show();
  });
}

async function begin() {
  state.load = (await ask("load")).samples;
  listen();
  await show();
}

setInterval(() => {
  const isBusy = document.querySelector("dialog[open]") || address()[0] === "plan";
  if (state.me && !isBusy && !document.hidden) show();
}, PLAIN_REFRESH_MS);

addEventListener("hashchange", show);

try {
  state.me = await ask("me");
  await begin();
} catch {
  await show();
}
