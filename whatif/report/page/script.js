"use strict";
// The page is complete without this script; it adds sorting, searching, copying, tips and themes.

const all = (query, root = document) => [...root.querySelectorAll(query)];
const make = (tag, values = {}, ...children) => {
  const made = Object.assign(document.createElement(tag), values);
  made.append(...children);
  return made;
};

function addTools() {
  const tools = document.getElementById("tools");
  if (!tools) return;
  const root = document.documentElement;
  const isDark = () => root.dataset.theme
    ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  const theme = make("button", { type: "button", id: "theme" });
  const name = () => { theme.textContent = isDark() ? "Light" : "Dark"; theme.setAttribute("aria-label", `${theme.textContent} theme`); };
  theme.onclick = () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    try { localStorage.setItem("replay-theme", root.dataset.theme); } catch { /* not remembered */ }
    name();
  };
  name();
  addFold(tools, "fold", all("details.section"), "sections");
  addFold(tools, "fold-details", all("details.detail"), "details");
  tools.append(theme);
}

function addFold(tools, id, boxes, word) {
  if (!boxes.length) return;
  const fold = make("button", { type: "button", id });
  const isOpen = () => boxes.some((one) => one.open);
  const name = () => { fold.textContent = `${isOpen() ? "Fold" : "Open"} ${word}`; };
  fold.onclick = () => {
    const wasOpen = isOpen();
    boxes.forEach((one) => { one.open = !wasOpen; });
    name();
  };
  // Boxes are also opened one by one; `toggle` does not bubble.
  document.addEventListener("toggle", name, true);
  name();
  tools.append(fold);
}

function valueOf(row, at) {
  const cell = row.cells[at];
  if (cell.dataset.v !== undefined) return Number(cell.dataset.v);
  return cell.textContent === "-" ? null : cell.textContent;
}

function compare(a, b) {
  if (a === null || b === null) return (a === null) - (b === null);
  return typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), "en", { numeric: true });
}

// Unknown values stay last in both directions.
function sortBy(table, at, isDown) {
  const body = table.tBodies[0];
  const rows = [...body.rows].map((row) => ({ row, value: valueOf(row, at) }));
  rows.sort((a, b) => (isDown && a.value !== null && b.value !== null ? compare(b.value, a.value) : compare(a.value, b.value)));
  body.append(...rows.map((one) => one.row));
}

function makeSortable(table) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, at) => {
    if (table.tBodies[0].rows.length < 2) return;
    const button = make("button", { type: "button", textContent: head.textContent || "name" });
    head.replaceChildren(button);
    head.setAttribute("aria-sort", "none");
    button.onclick = () => {
      const was = head.getAttribute("aria-sort");
      const isDown = was === "none" ? head.classList.contains("number") : was === "ascending";
      heads.forEach((one) => one.hasAttribute("aria-sort") && one.setAttribute("aria-sort", "none"));
      head.setAttribute("aria-sort", isDown ? "descending" : "ascending");
      sortBy(table, at, isDown);
    };
  });
}

function addFilter(table) {
  const input = make("input", { type: "search", placeholder: "part of a row" });
  const count = make("span");
  count.setAttribute("role", "status");
  const rows = [...table.tBodies[0].rows];
  input.oninput = () => {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    const shown = rows.filter((row) => {
      const text = `${row.textContent} ${row.cells[0].title}`.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
      return !row.hidden;
    });
    count.textContent = words.length ? `${shown.length} of ${rows.length}` : "";
  };
  const label = make("label", { className: "filter" }, "Filter", input, count);
  table.closest(".scroll").before(label);
}

function addCopy(box) {
  const button = make("button", { type: "button", textContent: "Copy" });
  button.onclick = async () => {
    const text = box.querySelector("code").textContent;
    try {
      await navigator.clipboard.writeText(text);
    } catch { // a page opened from a file may have no clipboard: select, so that Ctrl-C copies
      getSelection().selectAllChildren(box.querySelector("code"));
      button.textContent = "Selected";
      return;
    }
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  };
  box.append(button);
}

// Titles of marks become one tip for pointer and keyboard: a chart takes the focus, arrows go from mark to mark.
function addTips() {
  const tip = document.getElementById("tip");
  let lit = null;
  let isByKey = false;
  const hide = () => { tip.hidden = true; if (lit) lit.classList.remove("lit"); lit = null; isByKey = false; };
  const show = (mark, x, y) => {
    hide();
    lit = mark;
    if (mark.ownerSVGElement) mark.classList.add("lit");
    tip.textContent = mark.dataset.tip;
    tip.hidden = false;
    const box = tip.getBoundingClientRect();
    tip.style.left = `${Math.max(8, Math.min(x + 12, innerWidth - box.width - 8))}px`;
    tip.style.top = `${y + 16 + box.height > innerHeight ? y - box.height - 10 : y + 16}px`;
  };
  const showBeside = (mark) => {
    const box = mark.getBoundingClientRect();
    show(mark, box.left + box.width / 2, box.bottom - 8);
    isByKey = true;
  };
  all("svg title").forEach((title) => {
    title.parentNode.dataset.tip = title.textContent;
    title.remove();
  });
  all("svg.chart").forEach((chart) => {
    const marks = all("[data-tip]", chart);
    if (!marks.length) return;
    let at = -1;
    chart.setAttribute("tabindex", "0");
    chart.addEventListener("keydown", (event) => {
      const by = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      if (event.key === "Escape") hide();
      if (!by) return;
      event.preventDefault();
      at = (at + by + marks.length) % marks.length;
      showBeside(marks[at]);
    });
    chart.addEventListener("focus", () => { if (chart.matches(":focus-visible")) { at = 0; showBeside(marks[0]); } });
    chart.addEventListener("blur", hide);
  });
  all("th[data-tip]").forEach((head) => {
    head.addEventListener("focusin", () => showBeside(head));
    head.addEventListener("focusout", hide);
  });
  document.addEventListener("pointermove", (event) => {
    const mark = event.target.closest?.("[data-tip]");
    if (mark) show(mark, event.clientX, event.clientY);
    else if (!isByKey) hide();
  });
  document.addEventListener("pointerdown", (event) => {
    const mark = event.target.closest?.("svg [data-tip]");
    if (mark) show(mark, event.clientX, event.clientY); else hide();
  });
  addEventListener("scroll", () => { if (isByKey) showBeside(lit); else hide(); }, { passive: true });
}

function followContents() {
  const links = new Map(all(".toc a").map((link) => [link.hash.slice(1), link]));
  const sections = all("main section[id]");
  if (!links.size || !sections.length) return;
  const mark = () => {
    const line = innerHeight * 0.25;
    const passed = sections.filter((one) => one.getBoundingClientRect().top <= line);
    const here = (passed.at(-1) ?? sections[0]).id;
    links.forEach((link, id) => (id === here ? link.setAttribute("aria-current", "true") : link.removeAttribute("aria-current")));
  };
  addEventListener("scroll", mark, { passive: true });
  mark();
  const narrow = matchMedia("(max-width: 60rem)");
  const box = document.querySelector(".toc details");
  const fit = () => { box.open = !narrow.matches; };
  narrow.addEventListener("change", fit);
  fit();
}

function openWhereLed() {
  const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!target) return;
  for (let box = target.closest("details") ?? target.querySelector("details.section"); box; box = box.parentElement.closest("details")) box.open = true;
  target.scrollIntoView();
}

let closed = [];
addEventListener("beforeprint", () => {
  closed = all("details:not([open])");
  closed.forEach((one) => { one.open = true; });
});
addEventListener("afterprint", () => closed.forEach((one) => { one.open = false; }));
addEventListener("hashchange", openWhereLed);

addTools();
all("table").forEach(makeSortable);
all("table[data-filter]").forEach(addFilter);
all(".typed").forEach(addCopy);
addTips();
followContents();
openWhereLed();
