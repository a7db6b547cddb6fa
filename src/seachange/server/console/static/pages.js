// One function for each page: it gets what it shows, and returns the elements.

import { chart, element, moment, records, shown, table } from "./picture.js";

const GOOD = ["succeeded"];
const BAD = ["failed", "canceled", "reverting"];
const OPEN = ["pending", "running", "paused", "ready", "reverting"];

function statusOf(status) {
  const tone = GOOD.includes(status) ? "good" : BAD.includes(status) ? "bad" : "wait";
  return element("span", { class: `status ${tone}` }, status);
}

function facts(pairs) {
  const items = pairs.filter(([, value]) => value !== null && value !== undefined && value !== "");
  return element("ul", { class: "facts" }, items.map(([name, value]) => element("li", {}, `${name} `, element("b", {}, shown(value)))));
}

function button(label, action, main = false) {
  return element("button", { type: "button", class: main ? "main" : null, onclick: action }, label);
}

// The requests that a job in this status understands.
const REQUESTS = {
  pending: ["pause", "cancel"],
  running: ["pause", "cancel"],
  paused: ["resume", "cancel"],
  ready: ["publish", "cancel"],
  reverting: [],
};

function jobButtons(job, act) {
  const allowed = (REQUESTS[job.status] ?? []).filter((request) => request !== "cancel" || job.can_be_canceled);
  if (!allowed.length) return null;
  const label = (request) => `${request[0].toUpperCase()}${request.slice(1)}`;
  const ask = (request) => () => act(`${request}_job`, job.id, `${label(request)} job ${job.id}?`, job.statement);
  return element("p", { class: "buttons" }, allowed.map((request) => button(`${label(request)} job ${job.id}`, ask(request))));
}

export function stageList(finished, current) {
  const items = finished.map((stage) => element("li", { class: "done" }, `${stage.stage} ✓`));
  if (current) items.push(element("li", { class: "now", "aria-current": "step" }, current));
  return element("ol", { class: "stages", "aria-label": "Stages" }, items);
}

function jobCard(job, stages, act) {
  const progress = job.progress === null ? null : element("progress", { max: 1, value: job.progress, "aria-label": `Progress of job ${job.id}` });
  const finished = stages.filter((stage) => stage.job_id === job.id).reverse();
  return element(
    "section",
    { class: "card" },
    element("h3", {}, job.statement ?? `job ${job.id}`),
    element("p", {}, `Job ${job.id}: `, statusOf(job.status), job.request ? ` (${job.request} requested)` : ""),
    stageList(finished, OPEN.includes(job.status) ? (job.stage ?? job.phase) : null),
    job.waiting_for === SPARK_START ? element("p", {}, "Starting Spark …") : OPEN.includes(job.status) ? progress : null,
    facts([
      ["rows", job.rows_total === null ? job.rows_done : `${shown(job.rows_done)} of ${shown(job.rows_total)}`],
      ["rows per second", job.rows_per_second === null ? null : Math.round(job.rows_per_second)],
      ["estimated end", moment(job.eta)],
      ["waits for", job.waiting_for],
      ["node", job.node],
      ["session", job.session],
      ["bytes written", job.written_bytes],
      ["entries added by others", job.hidden_entries],
      ["started", moment(job.created)],
    ]),
    job.error ? element("p", { class: "problem" }, job.error, job.hint ? ` ${job.hint}` : "") : null,
    jobButtons(job, act),
  );
}

const CHANGE_COLUMNS = ["id", "statement", "role", "published", "strategy", "rows", "bytes", "time", "waits", "undo until", "undo"];

function estimated(actual, estimate) {
  return estimate === null ? shown(actual) : `${shown(actual)} (estimated ${shown(estimate)})`;
}

export function changesPage({ jobs, stages, changes, load }, { act, plan }) {
  const open = jobs.filter((job) => OPEN.includes(job.status));
  const ended = jobs.filter((job) => !OPEN.includes(job.status)).slice(0, 10);
  const rows = changes.map((change) => ({
    ...change,
    rows: estimated(change.rows, change.estimated_rows),
    bytes: estimated(change.bytes, change.estimated_bytes),
    time: `${estimated(change.duration_ms, change.estimated_ms)} ms`,
    "undo until": moment(change.undoable_until),
    undo: change.undoable_until ? button(`Plan the revert of ${change.id}`, () => plan(`REVERT CHANGE ${change.id}`)) : "",
  }));
  return [
    element("h1", {}, "Schema changes"),
    element("h2", {}, "Now"),
    open.length ? open.map((job) => jobCard(job, stages, act)) : element("p", { class: "empty" }, "No schema change is running."),
    loadCharts(load, shades(stages, jobs)),
    element("h2", {}, "History"),
    table("Published changes, newest first", CHANGE_COLUMNS, rows, ["statement"]),
    element("h2", {}, "Jobs that have ended"),
    ended.length ? ended.map((job) => jobCard(job, stages, act)) : element("p", { class: "empty" }, "None."),
  ].flat();
}

export function shades(stages, jobs) {
  const spans = stages.map((stage) => {
    const from = Date.parse(stage.began);
    return { from, to: from + (stage.duration_ms ?? 0), name: `job ${stage.job_id}: ${stage.stage}` };
  });
  const running = jobs.filter((job) => job.status === "running");
  return [...spans, ...running.map((job) => ({ from: Date.parse(job.created), to: Date.now(), name: `job ${job.id}` }))];
}

export function loadCharts(samples, spans) {
  if (samples.length < 2) return element("p", { class: "empty" }, "The first figures of this node's load come in a few seconds.");
  return element(
    "div",
    { id: "charts" },
    chart("Statements per second on this node, stages of jobs shaded", "/s", samples, "statements", spans),
    chart("Duration of 99 of 100 statements", "ms", samples, "p99_ms", spans),
  );
}

// The stages that EXPLAIN (DDL) names, in their order.
export function stagesOfPlan(lines) {
  const found = [];
  let isFinal = false;
  for (const line of lines) {
    if (line.startsWith("Phase ")) isFinal = line.includes("non-revertible");
    const match = /^\s+Stage (\d+) of (\d+) in (.+?): (.+?)(?:,.*)?$/.exec(line);
    if (match) found.push({ title: `${match[3]}: ${match[4]}`, isFinal });
  }
  return found;
}

export function planPage(state, { explain, run }) {
  const text = element("textarea", { id: "text", spellcheck: "false", "aria-describedby": "text-help" });
  text.value = state.text;
  const children = [
    element("h1", {}, "Plan a change"),
    element("label", { for: "text" }, "Schema change"),
    element("p", { id: "text-help", class: "empty" }, "One statement, or several between BEGIN and COMMIT. Explaining changes nothing."),
    text,
    element("p", { class: "buttons" }, button("Explain", () => explain(text.value), true)),
  ];
  if (state.problem) children.push(element("p", { class: "problem", role: "alert" }, state.problem));
  if (state.explained) children.push(...explained(state, run));
  if (state.runs.length) children.push(element("h2", {}, "Started from here"), runsTable(state.runs));
  return children;
}

function explained({ explained: { cost, plan }, text }, run) {
  const stages = stagesOfPlan(plan);
  const items = stages.map((stage) => element("li", { class: stage.isFinal ? "final" : null }, stage.title));
  return [
    element("h2", {}, "Stages"),
    element("ol", { class: "stages", "aria-label": "Stages of the plan" }, items),
    element("p", { class: "empty" }, "Stages with a red frame are past the point of no return."),
    element("h2", {}, "Cost"),
    element("pre", { tabindex: "0" }, cost.join("\n")),
    element("details", {}, element("summary", {}, "The whole plan"), element("pre", { tabindex: "0" }, plan.join("\n"))),
    element("p", { class: "buttons" }, button("Run this change", () => run(text))),
  ];
}

function runsTable(runs) {
  const rows = runs.map((one) => ({
    statement: one.statement,
    outcome: one.outcome === null ? "runs: see Schema changes" : element("span", { class: one.failed ? "problem" : null }, one.outcome),
  }));
  return table("Changes that you have started", ["statement", "outcome"], rows, ["statement"]);
}

export function tablesPage(tables, open) {
  const rows = tables.map((one) => ({
    schema: one.table_schema,
    table: element("a", { href: `#tables/${encodeURIComponent(one.table_schema)}/${encodeURIComponent(one.table_name)}` }, one.table_name),
    version: one.version,
    columns: one.columns,
    indexes: one.indexes,
    "in change": one.changing,
  }));
  const page = [element("h1", {}, "Tables"), table("Tables that you may see", ["schema", "table", "version", "columns", "indexes", "in change"], rows)];
  return open ? [...page, ...tablePart(open)] : page;
}

function tablePart({ schema, name, columns, elements, layouts, parts, changes }) {
  const total = layouts.reduce((sum, layout) => sum + (layout.rows ?? 0), 0);
  const shares = layouts.map((layout) => ({ ...layout, share: total ? `${Math.round((100 * layout.rows) / total)} %` : "" }));
  const versions = changes.filter((change) => (change.objects ?? "").includes(name));
  return [
    element("h2", {}, `${schema}.${name}`),
    table("Columns", ["column_name", "data_type", "is_nullable", "column_default"], columns, ["column_default"]),
    element("h3", {}, "Elements and their states"),
    table("Elements", ["element", "name", "state"], elements),
    element("h3", {}, "Layouts"),
    table("Layouts, newest first", ["layout_id", "is_current", "share", "rows", "segments", "columns"], shares, ["columns"]),
    element("h3", {}, "Segments"),
    table("Segments by index", ["index_name", "segments", "rows", "size_bytes"], parts),
    element("h3", {}, "Versions over time"),
    table("Changes", ["id", "published", "objects", "statement"], versions, ["statement"]),
  ];
}

// Who blocks whom, as a tree below each session that itself waits for none. A session is listed once below each holder.
function blockingTree(sessions) {
  const byPid = new Map(sessions.map((session) => [String(session.pid), session]));
  const holders = (session) => (session.blocked_by ?? "").split(", ").filter((pid) => byPid.has(pid));
  const waiting = sessions.filter((session) => holders(session).length);
  const roots = [...new Set(waiting.flatMap(holders))].filter((pid) => !holders(byPid.get(pid)).length);
  if (!waiting.length) return element("p", { class: "empty" }, "No session waits for another one.");
  const branch = (pid, above) => {
    const session = byPid.get(pid);
    const below = above.includes(pid) ? [] : waiting.filter((one) => holders(one).includes(pid));
    return element(
      "li",
      {},
      `${pid} ${session.role}, ${session.state ?? ""}${session.waits_for ? `, waits for ${session.waits_for}` : ""}: `,
      element("code", {}, session.statement ?? ""),
      below.length ? element("ul", {}, below.map((one) => branch(String(one.pid), [...above, pid]))) : null,
    );
  };
  // Sessions that wait in a circle have no root, until one of them gives way.
  const starts = roots.length ? roots : [String(waiting[0].pid)];
  return element("ul", { class: "tree", "aria-label": "Who blocks whom" }, starts.map((pid) => branch(pid, [])));
}

export function nodesPage({ nodes, sessions, waits, leases, events }, act) {
  const rows = sessions.map((session) => ({
    ...session,
    end: element(
      "span",
      { class: "buttons" },
      session.state === "active" ? button(`Cancel ${session.pid}`, () => act("cancel_statement", session.pid, `Cancel the statement of session ${session.pid}?`, session.statement)) : null,
      button(`End ${session.pid}`, () => act("end_session", session.pid, `End session ${session.pid}? Its transaction is rolled back.`, session.statement)),
    ),
  }));
  const live = nodes.filter((node) => node.live);
  return [
    element("h1", {}, "Nodes and sessions"),
    element("h2", {}, "Sessions"),
    table("Sessions of all nodes", ["pid", "role", "state", "statement", "waits_for", "blocked_by", "application", "node", "client_address", "state_changed", "end"], rows, ["statement"]),
    element("h2", {}, "Waits"),
    blockingTree(sessions),
    table("Who waits for whom", ["session", "mode", "waits_for", "blocked_by", "node"], waits),
    element("h2", {}, "Leases"),
    table("Versions that transactions still use", ["table_schema", "table_name", "version", "newest_version", "is_changing", "job_id", "session", "node", "since"], leases),
    element("h2", {}, "Nodes"),
    table("Nodes that are alive", ["name", "epoch", "low_water", "write_mark", "expiry_ms", "format", "release", "latency_ms"], live),
    element("h2", {}, "Events"),
    table("Newest events", ["moment", "job_id", "event"], events, ["event"]),
  ];
}

export function loadPage(samples, spans, statements, jobs) {
  const last = samples[samples.length - 1] ?? { statements: 0, p99_ms: null, failed: 0, conflicts: 0, job_rows: 0, compactions: 0 };
  const charts = [
    ["Statements that failed, per second", "/s", "failed"],
    ["Commits refused because of a conflict, per second", "/s", "conflicts"],
    ["Rows that jobs read, per second", "/s", "job_rows"],
    ["Indexes compacted, per second", "/s", "compactions"],
  ];
  const working = jobs.filter((job) => ["running", "reverting"].includes(job.status));
  return [
    element("h1", {}, "Load"),
    facts([
      ["statements per second", last.statements],
      ["99 of 100 within (ms)", last.p99_ms],
      ["failed per second", last.failed],
      ["conflicts per second", last.conflicts],
      ["rows read by jobs per second", last.job_rows],
      ["compactions per second", last.compactions],
    ]),
    working.map((job) => element("p", {}, `Job ${job.id} on ${job.node ?? "no node"}: ${workOf(job)}`)),
    loadCharts(samples, spans),
    samples.length < 2 ? [] : charts.map(([title, unit, name]) => chart(title, unit, samples, name, spans)),
    element("h2", {}, "Statements"),
    table("Statements that took most time, on all nodes", STATEMENT_COLUMNS, statements, ["statement"]),
  ].flat();
}

const STATEMENT_COLUMNS = ["statement", "calls", "failures", "total_ms", "mean_ms", "longest_ms", "rows", "role", "node"];
// What a job waits for while its Spark application is being started.
const SPARK_START = "Spark to start";

function workOf(job) {
  return job.waiting_for === SPARK_START ? "starting Spark" : job.waiting_for ? `waits for ${job.waiting_for}` : job.stage ?? job.phase;
}

export function loginPage(problem, login) {
  const field = (id, label, type, hint, more = {}) => [
    element("label", { for: id }, label),
    element("input", { id, name: id, type, autocomplete: hint, ...more }),
  ];
  const submit = (event) => {
    event.preventDefault();
    login(Object.fromEntries(new FormData(event.target)));
  };
  return [
    element(
      "form",
      { class: "login", onsubmit: submit },
      element("h1", {}, "Seachange"),
      field("user", "Role", "text", "username", { required: true, autofocus: true }),
      field("password", "Password", "password", "current-password"),
      field("database", "Database", "text", "off", { placeholder: "seachange" }),
      problem ? element("p", { class: "problem", role: "alert" }, problem) : null,
      element("p", { class: "buttons" }, element("button", { class: "main" }, "Log in")),
    ),
  ];
}

export { records };
