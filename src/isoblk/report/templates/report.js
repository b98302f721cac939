// SPDX-License-Identifier: GPL-2.0-only
// Sorting, the filter, explanations and the theme. The page says all that it says without them.
(() => {
  "use strict";
  const root = document.documentElement;
  const all = (selector, from = document) => [...from.querySelectorAll(selector)];

  // ---- light and dark: as the system has it, until it is chosen ----
  const themes = ["auto", "light", "dark"];
  const button = document.querySelector(".theme");
  const store = (value) => {
    try {
      if (value === undefined) return localStorage.getItem("isoblk-theme");
      localStorage.setItem("isoblk-theme", value);
    } catch { /* A page from a file may have no storage. */ }
    return null;
  };
  const choose = (theme) => {
    if (theme === "auto") root.removeAttribute("data-theme");
    else root.setAttribute("data-theme", theme);
    button.textContent = `Theme: ${theme}`;
    button.dataset.theme = theme;
  };
  choose(themes.includes(store()) ? store() : "auto");
  button.addEventListener("click", () => {
    const next = themes[(themes.indexOf(button.dataset.theme) + 1) % themes.length];
    choose(next);
    store(next);
  });

  // ---- contents: folded where there is no room beside the page ----
  const contents = document.querySelector("nav details");
  const narrow = matchMedia("(max-width: 68rem)");
  const fold = () => { contents.open = !narrow.matches; };
  fold();
  narrow.addEventListener("change", fold);
  contents.addEventListener("click", (event) => {
    if (event.target.closest("a") && narrow.matches) contents.open = false;
  });

  // ---- what a word means ----
  const tip = document.getElementById("tip");
  let shown = null;
  let leaving = 0;
  const hide = () => { tip.hidden = true; shown = null; };
  const show = (target, word) => {
    clearTimeout(leaving);
    const meaning = document.getElementById(word);
    if (!meaning) return;
    tip.textContent = meaning.textContent;
    tip.hidden = false;
    shown = target;
    const at = target.getBoundingClientRect();
    const size = tip.getBoundingClientRect();
    const left = Math.min(Math.max(8, at.left), innerWidth - size.width - 8);
    const below = at.bottom + 6;
    const top = below + size.height > innerHeight ? at.top - size.height - 6 : below;
    tip.style.left = `${Math.max(8, left)}px`;
    tip.style.top = `${Math.max(8, top)}px`;
  };
  const later = () => { leaving = setTimeout(hide, 150); };
  const explain = (target, word) => {
    target.setAttribute("aria-describedby", word);
    target.addEventListener("mouseenter", () => show(target, word));
    target.addEventListener("mouseleave", later);
    target.addEventListener("focus", () => show(target, word));
    target.addEventListener("blur", hide);
  };
  tip.addEventListener("mouseenter", () => clearTimeout(leaving));
  tip.addEventListener("mouseleave", later);
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") hide(); });
  addEventListener("scroll", () => { if (shown) hide(); }, { passive: true, capture: true });

  // ---- sorting ----
  const value = (row, column, numeric) => {
    const cell = row.cells[column];
    return numeric ? Number(cell.dataset.v ?? "NaN") : cell.textContent.trim();
  };
  const order = (table, header, column) => {
    const numeric = header.classList.contains("n");
    const down = header.getAttribute("aria-sort") === (numeric ? "descending" : "ascending");
    const sort = numeric === down ? "ascending" : "descending";
    all("th", table).forEach((other) => {
      other.setAttribute("aria-sort", "none");
      const arrow = other.querySelector(".arrow");
      if (arrow) arrow.textContent = "";
    });
    header.setAttribute("aria-sort", sort);
    header.querySelector(".arrow").textContent = sort === "ascending" ? "↑" : "↓";
    const sign = sort === "ascending" ? 1 : -1;
    const body = table.tBodies[0];
    const rows = [...body.rows].sort((a, b) => {
      const x = value(a, column, numeric);
      const y = value(b, column, numeric);
      if (!numeric) return sign * x.localeCompare(y, "en", { numeric: true });
      // What has no figure comes last, whichever way.
      if (Number.isNaN(x) || Number.isNaN(y)) return Number.isNaN(x) - Number.isNaN(y);
      return sign * (x - y);
    });
    body.append(...rows);
  };
  all("table.sortable").forEach((table) => {
    all("th", table).forEach((header, column) => {
      const link = header.querySelector("a.word");
      const head = document.createElement("button");
      const name = document.createElement("span");
      const arrow = document.createElement("span");
      head.type = "button";
      name.className = "name";
      name.textContent = header.textContent;
      arrow.className = "arrow";
      arrow.setAttribute("aria-hidden", "true");
      head.append(name, arrow);
      header.replaceChildren(head);
      header.setAttribute("aria-sort", "none");
      head.addEventListener("click", () => order(table, header, column));
      if (link) explain(head, link.hash.slice(1));
    });
  });
  all("a.word").forEach((link) => {
    const word = link.hash.slice(1);
    explain(link, word);
    link.addEventListener("click", (event) => {
      event.preventDefault();
      show(link, word);
    });
  });

  // ---- the filter of runs ----
  const field = document.getElementById("filter");
  if (field) {
    const rows = all("#runs-table tbody tr");
    const sections = all("details.run");
    const count = document.getElementById("filtered");
    const apply = () => {
      const wanted = field.value.toLowerCase().split(/\s+/).filter(Boolean);
      const fits = (text) => wanted.every((word) => text.toLowerCase().includes(word));
      rows.forEach((row) => { row.hidden = !fits(row.textContent); });
      sections.forEach((section) => {
        section.hidden = !fits(section.querySelector("summary").textContent);
      });
      const left = rows.filter((row) => !row.hidden).length;
      count.textContent = wanted.length ? `${left} of ${rows.length} shown` : "";
    };
    field.addEventListener("input", apply);
    apply();
  }

  // ---- what scrolls can be reached by keyboard; a link opens what it leads to ----
  const reach = () => all(".scroll").forEach((box) => {
    box.classList.remove("cut");
    const cut = box.scrollWidth > box.clientWidth + 1;
    box.classList.toggle("cut", cut);
    if (cut) box.tabIndex = 0;
    else box.removeAttribute("tabindex");
  });
  reach();
  addEventListener("resize", reach);
  const open = () => {
    const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (target instanceof HTMLDetailsElement) target.open = true;
  };
  addEventListener("hashchange", open);
  open();
})();
