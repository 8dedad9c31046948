"use strict";
// The page of `replay serve`. What it shows comes from the server as numbers and words; words are
// put in as text, never as markup. State is a list of items {key, words}: key names a knob, or is
// null for what-ifs typed under "Anything else". Order is the order in which they stack.

const TOKEN = new URLSearchParams(location.search).get("token") || "";
const PAGE = Math.random().toString(36).slice(2);
const byId = (id) => document.getElementById(id);

let run = null;
let knobs = [];
let widgets = new Map();
let items = [];
let pins = [];
let shown = null;
let unchanged = null;

// ---- talking to the server

async function call(path, ask, signal) {
  const given = { headers: { "X-Replay-Token": TOKEN }, signal };
  if (ask) {
    given.method = "POST";
    given.headers["Content-Type"] = "application/json";
    given.body = JSON.stringify(ask);
  }
  const response = await fetch(path, given);
  const answer = await response.json();
  if (response.ok) return answer;
  throw Object.assign(new Error(answer.error), { hint: answer.hint, status: response.status });
}

const isStale = (error) => error.name === "AbortError" || error.status === 409;

// ---- words of a command line

function quoted(word) {
  return /^[\w@%+=:,.\/-]+$/.test(word) ? word : "'" + word.replaceAll("'", "'\"'\"'") + "'";
}

function joined(words) {
  return words.map(quoted).join(" ");
}

function split(text) {
  const words = [];
  let word = null;
  let quote = "";
  for (const sign of text) {
    if (quote) {
      if (sign === quote) quote = "";
      else word += sign;
    } else if (sign === "'" || sign === '"') {
      quote = sign;
      word = word ?? "";
    } else if (/\s/.test(sign)) {
      if (word !== null) words.push(word);
      word = null;
    } else word = (word ?? "") + sign;
  }
  if (word !== null) words.push(word);
  return words;
}

// ---- state: items <-> words <-> address

const same = (a, b) => a.length === b.length && a.every((word, at) => word === b[at]);
const allWords = () => items.flatMap((item) => item.words);
const itemOf = (key) => items.find((item) => item.key === key);

function itemsOf(words) {
  const found = [];
  let at = 0;
  while (at < words.length) {
    const knob = knobs.find((one) => !found.some((item) => item.key === one.key) && length(one, words, at));
    const count = knob ? length(knob, words, at) : lengthOfUnknown(words, at);
    found.push({ key: knob ? knob.key : null, words: words.slice(at, at + count) });
    at += count;
  }
  return found;
}

function length(knob, words, at) {
  for (const { flags } of knob.positions) {
    if (flags.length && same(flags, words.slice(at, at + flags.length))) return flags.length;
  }
  const isTyped = takesValue(knob) && words[at] === `--${knob.key}` && at + 1 < words.length;
  return isTyped ? 2 : 0;
}

// Its option has a value, so that one beside its positions may be typed.
const takesValue = ({ key, positions }) => positions.some(({ flags }) => flags.length === 2 && flags[0] === `--${key}`);

function lengthOfUnknown(words, at) {
  let count = 1;
  while (at + count < words.length && !words[at + count].startsWith("--")) count += 1;
  return count;
}

function turn(key, words) {
  const known = itemOf(key);
  if (!words.length) items = items.filter((item) => item.key !== key);
  else if (known) known.words = words;
  else {
    const place = (one) => (one === null ? knobs.length : knobs.findIndex((knob) => knob.key === one));
    const at = items.findIndex((item) => place(item.key) > place(key));
    items.splice(at < 0 ? items.length : at, 0, { key, words });
  }
  changed();
}

function keepInAddress() {
  const parts = items.length ? [`w=${encodeURIComponent(joined(allWords()))}`] : [];
  for (const pin of pins) parts.push(`pin=${encodeURIComponent(joined(pin.words))}`);
  history.replaceState(null, "", location.pathname + location.search + (parts.length ? `#${parts.join("&")}` : ""));
}

function readAddress() {
  const given = new URLSearchParams(location.hash.slice(1));
  pins = given.getAll("pin").map((text) => ({ words: split(text), answer: null }));
  const text = given.get("w");
  return text === null ? null : split(text);
}

// ---- asking: one question at a time, the newest state first; a short answer, then the full one

let going = false;
let bounding = null;
let trying = null;
let timer = 0;

function changed() {
  keepInAddress();
  showKnobs();
  clearWrong();
  byId("result").dataset.full = "false";
  byId("pending").hidden = false;
  byId("pending").textContent = "replaying";
  clearTimeout(timer);
  if (bounding) bounding.abort();
  if (trying) trying.abort();
  if (!going) pump();
}

async function pump() {
  going = true;
  let asked = null;
  while (asked === null || !same(asked, allWords())) {
    asked = allWords();
    await answered(asked);
  }
  going = false;
}

// A short answer is shown even where the knob has moved on: while it is dragged, the step follows.
async function answered(words) {
  bounding = null;
  const ask = { flags: words, page: PAGE };
  try {
    if (words.length) show(words, await call("/api/what-if", { ...ask, ranges: "steps" }), false);
    if (!same(words, allWords())) return;
    byId("pending").textContent = "bounding the answer";
    bounding = new AbortController();
    const { signal } = bounding;
    show(words, await call("/api/what-if", ask, signal), true);
    const [path, written] = await Promise.all([
      call("/api/path", ask, signal),
      call("/api/scenario", ask, signal),
    ]);
    showPath(path);
    showWritten(written);
    byId("pending").hidden = true;
    speak();
    timer = setTimeout(() => later(words), 500);
  } catch (error) {
    if (isStale(error) || !same(words, allWords())) return;
    byId("pending").hidden = true;
    showError(error);
    if (error.status === 400) await markWrong(words);
  }
}

async function later(words) {
  trying = new AbortController();
  try {
    const answer = await call("/api/states", { flags: words, page: PAGE }, trying.signal);
    if (same(words, allWords())) showStates(answer.states);
  } catch (error) {
    if (!isStale(error)) showError(error);
  }
  await fillPins();
}

async function fillPins() {
  for (const pin of pins.filter((one) => !one.answer && !one.error)) {
    try {
      pin.answer = await call("/api/what-if", { flags: pin.words, page: `${PAGE} pin` });
    } catch (error) {
      pin.error = error.message;
    }
  }
  showPins();
}

// ---- making elements

function make(tag, given = {}, ...inside) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(given)) {
    if (name === "class") element.className = value;
    else if (name in element && name !== "list") element[name] = value;
    else element.setAttribute(name, value);
  }
  element.append(...inside);
  return element;
}

const ms = (ns) => `${(ns / 1e6).toLocaleString("en-US", { minimumFractionDigits: 2, maximumFractionDigits: 2 })} ms`;
const sign = (value, least) => (Math.abs(value) < least ? "±" : value > 0 ? "+" : "−");
const signed = (ns) => sign(ns, 5000) + ms(Math.abs(ns));
const percent = (share) => `${(100 * share).toFixed(1)} %`;

function placed(element, share, width) {
  element.style.left = `${100 * share}%`;
  if (width !== undefined) element.style.width = `${100 * width}%`;
  return element;
}

function rangeBar(target, answer, top) {
  const { replayed_ns: before } = answer.baseline;
  const said = answer.prediction || { step_ns: before, low_ns: before, high_ns: before };
  const { step_ns: step, low_ns: low, high_ns: high } = said;
  target.replaceChildren(
    placed(make("i", { class: "between" }), low / top, (high - low) / top),
    placed(make("i", { class: "before" }), before / top),
    placed(make("i", { class: "point" }), step / top),
  );
}

const topOf = (answers) =>
  1.06 * Math.max(1, ...answers.flatMap((one) => [one.baseline.replayed_ns, one.prediction ? one.prediction.high_ns : 0]));

// ---- the result

function speedupWords(prediction) {
  if (!prediction) return "as recorded";
  if (prediction.speedup === null) return "nothing is left of the step";
  return `${prediction.speedup.toFixed(3)}x as fast`;
}

function show(words, answer, isFull) {
  shown = { words, answer, isFull };
  if (!words.length) unchanged = answer;
  const { prediction, baseline } = answer;
  const step = prediction ? prediction.step_ns : baseline.replayed_ns;
  byId("error").hidden = true;
  byId("behind").hidden = true;
  byId("result").classList.remove("stale");
  byId("step").textContent = ms(step);
  byId("step").dataset.ns = step;
  byId("speedup").textContent = speedupWords(prediction);
  const faster = prediction ? Math.sign(baseline.replayed_ns - step) : 0;
  byId("speedup").className = `speedup ${faster > 0 ? "faster" : faster < 0 ? "slower" : ""}`;
  rangeBar(byId("range"), answer, topOf([answer]));
  byId("range").classList.toggle("open", !isFull);
  const told = rangeWords(answer, isFull);
  byId("range").setAttribute("aria-label", told.map(([, text]) => text).join("; "));
  byId("range-words").replaceChildren(...told.map(([kind, text]) =>
    make("span", {}, ...(kind ? [make("i", { class: `key ${kind}` })] : []), text)));
  byId("result").dataset.full = String(isFull && same(words, allWords()));
  list("no-effect", prediction ? prediction.no_effect : []);
  list("errors", prediction ? prediction.known_errors : []);
  list("assumptions", prediction ? prediction.assumptions : []);
  showParts(answer.breakdown);
  showRanks(answer.ranks);
  showPins();
  if (!words.length && isFull) showChips(answer.levers || []);
  showTrust(answer.trust);
}

function rangeWords({ prediction, baseline, rates }, isFull) {
  const isReplayed = baseline.measured_ns !== baseline.replayed_ns;
  const before = ["before", `${isReplayed ? "replayed" : "recorded"} ${ms(baseline.replayed_ns)}`];
  const measured = isReplayed ? [["", `recorded ${ms(baseline.measured_ns)}`]] : [];
  const mfu = rates && rates.mfu_frac !== null ? [["", `MFU ${percent(rates.mfu_frac)}`]] : [];
  if (!prediction) return [before, ...measured, ...mfu];
  const range = `${ms(prediction.low_ns)} to ${ms(prediction.high_ns)}`;
  const told = [before, ...measured, ["point", `predicted ${ms(prediction.step_ns)}`],
    ["between", isFull ? `range ${range}` : `by the measured steps so far ${range}`]];
  told.push(...mfu);
  const { jitter, samples_factor: factor } = prediction;
  if (jitter) told.push(["", `single steps p50 ${ms(jitter.p50_ns)}, p95 ${ms(jitter.p95_ns)} (${jitter.samples} replays)`]);
  if (factor !== 1) {
    const speed = prediction.speedup === null ? "" : `: ${(factor * prediction.speedup).toFixed(3)}x the throughput`;
    told.push(["", `${factor}x the samples in a step${speed}`]);
  }
  return told;
}

function speak() {
  const { prediction, baseline } = shown.answer;
  byId("live").textContent = prediction
    ? `Step ${ms(prediction.step_ns)}, ${speedupWords(prediction)}, range ${ms(prediction.low_ns)} to ${ms(prediction.high_ns)}.`
    : `As recorded: step ${ms(baseline.replayed_ns)}.`;
}

function showTrust({ grade, strict_error_frac: error, explained_frac: explained, reasons, advice }) {
  const off = `${sign(error, 0.0005)}${percent(Math.abs(error))}`;
  byId("trust-words").textContent =
    `Trust ${grade}: replayed with nothing fitted, the unchanged step is off by ${off}; ${percent(explained)} of its critical path is explained.`;
  byId("trust-reasons").replaceChildren(...reasons.map((text) => make("li", { textContent: text })));
  list("lacks", advice);
}

function showError(error) {
  byId("error").textContent = error.hint ? `${error.message} (${error.hint})` : error.message;
  byId("error").hidden = false;
  byId("result").classList.add("stale");
  byId("behind").hidden = !shown;
  if (shown) {
    const name = shown.words.length ? joined(shown.words) : "as recorded";
    byId("behind").textContent = `All below, the command too, is still the answer to the last scenario that had one: ${name}`;
    showPins();
  }
  if (error instanceof TypeError) byId("error").textContent = "no answer: has `replay serve` ended?";
}

// Which of the what-ifs is none: each is read alone, and those that cannot be are marked.
async function markWrong(words) {
  const wrong = new Map();
  for (const item of items) {
    try {
      await call("/api/scenario", { flags: item.words, page: PAGE });
    } catch (error) {
      if (error.status === 400) wrong.set(item.key, error);
    }
  }
  if (!same(words, allWords())) return;
  for (const [key, error] of wrong) {
    const { root, control, reason, knob } = widgets.get(key) ?? {};
    for (const input of control ? control.all : [byId("extra")]) input.setAttribute("aria-invalid", "true");
    if (!root) continue;
    root.classList.add("wrong");
    reason.hidden = false;
    reason.textContent = `not understood: ${error.message}`;
    byId("error").textContent = `${knob.label}: ${byId("error").textContent}`;
  }
}

function clearWrong() {
  byId("extra").removeAttribute("aria-invalid");
  for (const { root, control, reason } of widgets.values()) {
    if (root.classList.contains("wrong")) reason.hidden = true;
    root.classList.remove("wrong");
    for (const input of control.all) input.removeAttribute("aria-invalid");
  }
}

function list(id, words) {
  byId(id).hidden = !words.length;
  byId(id).querySelector("ul").replaceChildren(...words.map((text) => make("li", { textContent: text })));
}

const PARTS = [
  ["compute", "c-compute", (parts) => parts.compute_ns],
  ["transfers not hidden", "c-comm", (parts) => parts.exposed_comm_ns - parts.exposed_wait_ns],
  ["waiting for other ranks", "c-wait", (parts) => parts.exposed_wait_ns],
  ["copies not hidden", "c-memcpy", (parts) => parts.exposed_memcpy_ns],
  ["idle", "c-idle", (parts) => parts.idle_ns],
];

function showParts({ baseline, predicted }) {
  const rows = PARTS.map(([name, role, of]) => ({ name, role, before: of(baseline), after: predicted && of(predicted) }));
  table(byId("parts"), "parts", rows, ms, signed);
  bars(byId("parts-bars"), rows);
}

const CAUSES = {
  compute: ["device compute", "c-compute"], transfer: ["transfers", "c-comm"],
  wait: ["waiting for other ranks", "c-wait"], copies: ["copies", "c-memcpy"],
  host: ["host work", "c-host"], input: ["data loader", "c-input"],
  unknown: ["lags and gaps without a known cause", "c-other"],
};

function showPath({ baseline, predicted }) {
  const rows = Object.keys(baseline)
    .map((cause) => {
      const [name, role] = CAUSES[cause] || [cause, "c-other"];
      return { name, role, before: baseline[cause], after: predicted && predicted[cause] };
    })
    .filter((row) => row.before || row.after)
    .sort((a, b) => b.before - a.before);
  const points = (share) => `${sign(share, 0.0005)}${(100 * Math.abs(share)).toFixed(1)} points`;
  table(byId("path"), "share of the critical path", rows, percent, points);
  bars(byId("path-bars"), rows);
}

function table(target, what, rows, shownAs, difference) {
  const isChanged = rows.some((row) => row.after !== null);
  const sum = (side) => rows.reduce((total, row) => total + row[side], 0);
  const line = (name, before, after, swatch) =>
    make("tr", {}, make("th", { scope: "row" }, ...(swatch ? [make("span", { class: `swatch ${swatch}` })] : []), name),
      ...[before, after].filter((value) => value !== null)
        .map((value) => make("td", { class: "number", textContent: shownAs(value) })),
      ...(after === null ? [] : [make("td", { class: "number", textContent: difference(after - before) })]));
  const heads = [what, "recorded", ...(isChanged ? ["predicted", "change"] : [])];
  target.replaceChildren(
    make("thead", {}, make("tr", {}, ...heads.map((text, at) =>
      make("th", { scope: "col", class: at ? "number" : "", textContent: text })))),
    make("tbody", {}, ...rows.map((row) => line(row.name, row.before, row.after, row.role)),
      line("all", sum("before"), isChanged ? sum("after") : null, "")),
  );
}

function bars(target, rows) {
  const isChanged = rows.some((row) => row.after !== null);
  const sum = (side) => rows.reduce((total, row) => total + Math.max(row[side], 0), 0);
  const most = Math.max(sum("before"), isChanged ? sum("after") : 0, 1e-9);
  const bar = (name, side) => {
    const stack = make("div", { class: "stack", "aria-hidden": "true" });
    for (const row of rows) {
      const part = make("i", { class: row.role, title: row.name });
      part.style.width = `${(100 * Math.max(row[side], 0)) / most}%`;
      stack.append(part);
    }
    return make("div", { class: "bar" }, make("span", { textContent: name }), stack);
  };
  target.replaceChildren(bar("recorded", "before"), ...(isChanged ? [bar("predicted", "after")] : []));
}

function showRanks(ranks) {
  const isChanged = ranks.some((one) => one.predicted_ns !== null);
  const most = Math.max(1, ...ranks.map((one) => Math.max(one.replayed_ns, one.predicted_ns ?? 0)));
  const heads = ["rank", "recorded", ...(isChanged ? ["predicted", "change"] : []), "step"];
  const row = (one) => {
    const both = make("div", { class: "twice", "aria-hidden": "true" },
      placed(make("i", { class: "was" }), 0, one.replayed_ns / most));
    if (one.predicted_ns !== null) both.append(placed(make("i", { class: "is" }), 0, one.predicted_ns / most));
    const after = one.predicted_ns === null ? ["not there", ""] : [ms(one.predicted_ns), signed(one.predicted_ns - one.replayed_ns)];
    const cells = [ms(one.replayed_ns), ...(isChanged ? after : [])];
    return make("tr", {}, make("th", { scope: "row", textContent: String(one.rank) }),
      ...cells.map((text) => make("td", { class: "number", textContent: text })), make("td", { class: "wide" }, both));
  };
  byId("ranks").replaceChildren(
    make("thead", {}, make("tr", {}, ...heads.map((text, at) =>
      make("th", { scope: "col", textContent: text, class: at === heads.length - 1 ? "wide" : at ? "number" : "" })))),
    make("tbody", {}, ...ranks.map(row)),
  );
}

function showWritten({ command, yaml }) {
  const [first, ...flags] = command.split(" --");
  byId("command").replaceChildren(first, ...flags.flatMap((text) => [" ", make("span", { class: "flag", textContent: `--${text}` })]));
  byId("yaml").textContent = yaml;
}

// ---- comparing

function pin() {
  const words = allWords();
  if (!pins.some((one) => same(one.words, words))) {
    const ready = shown && shown.isFull && same(shown.words, words);
    pins.push({ words, answer: ready ? shown.answer : null });
  }
  keepInAddress();
  showPins();
  fillPins();
}

function showPins() {
  byId("pins").hidden = !pins.length;
  if (!pins.length || !shown) return;
  const isPinned = pins.some((one) => same(one.words, shown.words));
  const rows = [...pins, ...(isPinned ? [] : [{ words: shown.words, answer: shown.answer, isNow: true }])];
  const top = topOf(rows.filter((one) => one.answer).map((one) => one.answer));
  byId("pins").querySelector("tbody").replaceChildren(...rows.map((one) => pinRow(one, top)));
}

function pinRow(one, top) {
  const name = one.words.length ? joined(one.words) : "as recorded";
  const isNow = same(one.words, allWords());
  const cells = one.answer ? pinCells(one.answer) : [one.error || "replaying", "", ""];
  const bar = make("div", { class: "small-range", "aria-hidden": "true" });
  if (one.answer) rangeBar(bar, one.answer, top);
  const parts = one.words.length ? itemsOf(one.words).map((item) => joined(item.words)) : [name];
  const inside = parts.flatMap((text) => [make("span", { class: "flag", textContent: text }), " "]);
  const back = make("button", { type: "button", class: "plain", title: "set the knobs to this" }, ...inside);
  back.addEventListener("click", () => setWords(one.words));
  const remove = make("button", { type: "button", textContent: "×", "aria-label": `remove ${name}` });
  remove.addEventListener("click", () => {
    pins = pins.filter((other) => other !== one);
    keepInAddress();
    showPins();
  });
  return make("tr", {}, make("th", { scope: "row" }, back, isNow ? " (now)" : one.isNow ? " (last answer)" : ""),
    ...cells.map((text) => make("td", { class: "number", textContent: text })),
    make("td", { class: "wide" }, bar), make("td", {}, ...(one.isNow ? [] : [remove])));
}

function pinCells({ prediction, baseline }) {
  if (!prediction) return [ms(baseline.replayed_ns), "", ""];
  const speedup = prediction.speedup === null ? "" : `${prediction.speedup.toFixed(3)}x`;
  return [ms(prediction.step_ns), `${ms(prediction.low_ns)} – ${ms(prediction.high_ns)}`, speedup];
}

// ---- knobs

function buildKnobs() {
  const groups = new Map();
  for (const knob of knobs) {
    if (!groups.has(knob.group)) groups.set(knob.group, make("fieldset", {}, make("legend", { textContent: knob.group })));
    const widget = buildKnob(knob);
    widget.home = groups.get(knob.group);
    widgets.set(knob.key, widget);
    widget.home.append(widget.root);
  }
  byId("groups").append(...groups.values());
}

function buildKnob(knob) {
  const id = `knob-${knob.key}`;
  const about = make("p", { class: "about", id: `${id}-about`, textContent: knob.about });
  const reason = make("p", { class: "reason", id: `${id}-reason`, hidden: true });
  const label = make("label", { htmlFor: id, textContent: knob.label });
  const back = make("button", { type: "button", class: "back", textContent: "×", title: "as recorded", "aria-label": `${knob.label} as recorded` });
  back.addEventListener("click", () => {
    turn(knob.key, []);
    byId(id).focus();
  });
  const control = CONTROLS[knob.kind](knob, id);
  control.main.setAttribute("aria-describedby", `${id}-about ${id}-reason`);
  const first = make("div", { class: "row" }, label, ...control.beside, ...(control.below.length ? [] : [back]));
  const second = control.below.length ? [make("div", { class: "row" }, ...control.below, back)] : [];
  const root = make("div", { class: "knob" }, first, ...second, about, reason);
  return { root, reason, control, knob };
}

const CONTROLS = {
  slider(knob, id) {
    const main = make("input", { type: "range", id, min: 0, max: knob.positions.length - 1, step: 1 });
    const output = make("output", { htmlFor: id });
    const typed = make("input", { type: "text", class: "typed", spellcheck: false, placeholder: knob.example, "aria-label": `${knob.label}, typed` });
    main.addEventListener("input", () => turn(knob.key, knob.positions[main.value].flags));
    typed.addEventListener("change", () => turn(knob.key, typed.value.trim() ? [`--${knob.key}`, typed.value.trim()] : []));
    return {
      main, all: [main, typed], beside: [output], below: knob.example ? [main, typed] : [main],
      set(words) {
        const at = knob.positions.findIndex((one) => same(one.flags, words));
        if (at >= 0) main.value = at;
        const asRecorded = knob.now ? `as recorded · ${knob.now}` : "as recorded";
        const text = !words.length ? asRecorded : at >= 0 ? knob.positions[at].label : words[1];
        output.textContent = text;
        main.setAttribute("aria-valuetext", text);
        typed.value = words.length > 1 && knob.example ? words[1] : "";
      },
    };
  },
  choice(knob, id) {
    const named = (one) => (one.flags.length || !knob.now ? one.label : `${one.label}: ${knob.now}`);
    const main = make("select", { id }, ...knob.positions.map((one, at) => make("option", { value: String(at), textContent: named(one) })));
    main.addEventListener("change", () => main.value !== "typed" && turn(knob.key, knob.positions[main.value].flags));
    return {
      main, all: [main], beside: [], below: [main],
      set(words) {
        const at = knob.positions.findIndex((one) => same(one.flags, words));
        main.querySelector("[value=typed]")?.remove();
        if (at < 0) main.append(make("option", { value: "typed", textContent: words[1] }));
        main.value = at < 0 ? "typed" : String(at);
      },
    };
  },
  switch(knob, id) {
    const main = make("input", { type: "checkbox", id });
    main.addEventListener("change", () => turn(knob.key, knob.positions[main.checked ? 1 : 0].flags));
    return {
      main, all: [main], beside: [main], below: [],
      set(words) {
        main.checked = words.length > 0;
      },
    };
  },
};

function showKnobs() {
  for (const [key, { root, control }] of widgets) {
    const item = itemOf(key);
    root.classList.toggle("turned", Boolean(item));
    control.set(item ? item.words : []);
  }
  const extra = joined(items.filter((item) => item.key === null).flatMap((item) => item.words));
  if (document.activeElement !== byId("extra")) byId("extra").value = extra;
  byId("reset").disabled = !items.length;
}

function showStates(states) {
  let idle = 0;
  for (const { key, can_act: canAct, reason } of states) {
    const { root, home, control, reason: words } = widgets.get(key);
    const isIdle = !canAct && !itemOf(key);
    idle += isIdle ? 1 : 0;
    for (const input of control.all) input.disabled = isIdle;
    words.hidden = canAct;
    words.textContent = canAct ? "" : `no effect here: ${reason}`;
    const target = isIdle ? byId("idle-knobs") : home;
    if (root.parentElement !== target) placeIn(target, root, key);
  }
  for (const home of byId("groups").children) home.hidden = !home.querySelector(".knob");
  byId("idle").hidden = !idle;
  byId("idle").querySelector("summary").textContent = `${idle} what-ifs that would change nothing here`;
}

function placeIn(target, root, key) {
  const order = knobs.map((knob) => knob.key);
  const next = [...target.querySelectorAll(":scope > .knob")].find((other) => {
    const otherKey = other.querySelector("[id^=knob-]").id.slice("knob-".length);
    return order.indexOf(otherKey) > order.indexOf(key);
  });
  target.insertBefore(root, next || null);
}

function setWords(words) {
  items = itemsOf(words);
  changed();
}

// ---- levers

function showChips(levers) {
  byId("presets").hidden = false;
  byId("chips").replaceChildren(...levers.map((lever) => {
    const chip = make("button", { type: "button", title: lever.flag, textContent: `${lever.why}: −${ms(lever.saving_ns)}` });
    chip.addEventListener("click", () => setWords(flagWords(lever.flag)));
    return chip;
  }));
  if (!levers.length) byId("chips").textContent = "no single lever saves half a percent";
}

function flagWords(flag) {
  const at = flag.indexOf(" ");
  return at < 0 ? [flag] : [flag.slice(0, at), flag.slice(at + 1)];
}

async function showLevers() {
  const words = allWords();
  byId("levers").hidden = false;
  byId("levers-words").textContent = "replaying every lever";
  byId("levers").querySelector("table").replaceChildren();
  byId("levers").scrollIntoView({ block: "nearest" });
  try {
    const answer = await call("/api/levers", { flags: words, page: PAGE });
    byId("levers-words").textContent =
      `Savings of a step of ${ms(answer.step_ns)} (${words.length ? joined(words) : "as recorded"}); below ${ms(answer.noise_ns)} is noise.`;
    byId("levers").querySelector("table").replaceChildren(...leverRows(answer.levers, words));
  } catch (error) {
    if (!isStale(error)) byId("levers-words").textContent = error.message;
  }
}

function leverRows(levers, words) {
  const heads = ["lever", "10 % faster", "twice as fast", "without limit", "range of that", ""];
  const saving = (moved) => (moved ? ms(moved.saving_ns) : "–");
  const rows = levers.map((lever) => {
    const best = lever.twice || lever.limit;
    const add = make("button", { type: "button", textContent: "try", "aria-label": `try ${lever.what}: ${best.flag}`, title: best.flag });
    add.addEventListener("click", () => setWords([...words, ...flagWords(best.flag)]));
    const cells = [saving(lever.tenth), saving(lever.twice), saving(lever.limit),
      `${ms(lever.limit.saving_low_ns)} – ${ms(lever.limit.saving_high_ns)}`];
    return make("tr", {}, make("th", { scope: "row", textContent: lever.what }),
      ...cells.map((text) => make("td", { class: "number", textContent: text })), make("td", {}, add));
  });
  return [
    make("thead", {}, make("tr", {}, ...heads.map((text, at) => make("th", { scope: "col", class: at ? "number" : "", textContent: text })))),
    make("tbody", {}, ...rows),
  ];
}

// ---- copying

async function copy(button) {
  const text = byId(button.dataset.copy).textContent;
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
  } catch {
    getSelection().selectAllChildren(byId(button.dataset.copy));
    button.textContent = "Selected";
  }
  setTimeout(() => { button.textContent = "Copy"; }, 1500);
}

// ---- beginning

function showRun() {
  const { trace } = run;
  const ranks = `${trace.ranks.length} rank${trace.ranks.length === 1 ? "" : "s"}`;
  const world = trace.world_size && trace.world_size !== trace.ranks.length ? ` of ${trace.world_size}` : "";
  const count = trace.steps.length;
  const steps = count ? `${count} step${count === 1 ? "" : "s"}` : "no step marks";
  byId("name").textContent = run.name;
  document.title = `What if - ${run.name}`;
  byId("facts").textContent = [ranks + world, trace.gpu || "no GPU rows", steps, `trust ${run.grade}`].join(" · ");
  byId("bound").textContent = `Recorded run: ${run.bound}.`;
  byId("program").textContent = run.program;
}

async function begin() {
  try {
    const [aboutRun, aboutKnobs] = await Promise.all([call("/api/run"), call("/api/knobs")]);
    run = aboutRun;
    knobs = aboutKnobs.knobs;
    unchanged = await call("/api/what-if", { flags: [] });
  } catch (error) {
    showError(error);
    return;
  }
  showRun();
  buildKnobs();
  showChips(unchanged.levers || []);
  items = itemsOf(readAddress() ?? run.start);
  byId("extra").addEventListener("change", () => {
    const words = split(byId("extra").value);
    items = items.filter((item) => item.key !== null);
    if (words.length) items.push({ key: null, words });
    changed();
  });
  byId("knobs").addEventListener("submit", (event) => event.preventDefault());
  byId("pin").addEventListener("click", pin);
  byId("reset").addEventListener("click", () => setWords([]));
  byId("all-levers").addEventListener("click", showLevers);
  for (const button of document.querySelectorAll("[data-copy]")) button.addEventListener("click", () => copy(button));
  addEventListener("hashchange", () => {
    items = itemsOf(readAddress() ?? []);
    changed();
  });
  changed();
}

begin();
