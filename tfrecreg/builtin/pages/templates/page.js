"use strict";
(() => {
  const all = (selector, from = document) => [...from.querySelectorAll(selector)];
  all("[data-script]").forEach((each) => { each.hidden = false; });

  const theme = document.querySelector("[data-theme-button]");
  theme.addEventListener("click", () => {
    const root = document.documentElement;
    const isDark = root.dataset.theme
      ? root.dataset.theme === "dark"
      : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = isDark ? "light" : "dark";
  });

  all("[data-findings]").forEach((section) => {
    const list = section.querySelector("[data-list]");
    const items = all(".finding", list);
    const search = section.querySelector("[data-search]");
    const severity = section.querySelector("[data-severity]");  // the list of datasets has none
    const order = section.querySelector("[data-order]");
    const shown = section.querySelector("[data-shown]");
    const filter = () => {
      const wanted = search.value.toLowerCase();
      let count = 0;
      for (const item of items) {
        const fits = (!severity?.value || item.dataset.severity === severity.value)
          && item.textContent.toLowerCase().includes(wanted);
        item.hidden = !fits;
        count += fits ? 1 : 0;
      }
      shown.textContent = `${count} of ${items.length} shown`;
    };
    const sort = () => {
      const keys = {
        worst: (item) => [-item.dataset.rank, item.dataset.number * 1],
        code: (item) => [item.dataset.code, item.dataset.number * 1],
        count: (item) => [-item.dataset.count, item.dataset.number * 1],
      };
      const key = keys[order.value];
      const compare = (one, other) => (one < other ? -1 : one > other ? 1 : 0);
      const sorted = [...items].sort((one, other) => {
        const [first, second] = [key(one), key(other)];
        return compare(first[0], second[0]) || compare(first[1], second[1]);
      });
      list.append(...sorted);
    };
    search.addEventListener("input", filter);
    severity?.addEventListener("change", filter);
    order?.addEventListener("change", sort);
    section.querySelector("[data-fold]")?.addEventListener("click", () => {
      const open = items.some((item) => !item.open);
      items.forEach((item) => { item.open = open; });
    });
    filter();
  });

  // An enlarged record is the target of a link, which needs no script. Keys make it quicker.
  const enlarged = () => document.querySelector("figure:target");
  const go = (place) => { location.hash = place; };
  addEventListener("keydown", (event) => {
    const figure = enlarged();
    if (!figure || event.ctrlKey || event.metaKey || event.altKey) return;
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (event.key === "Escape") {
      const card = figure.parentElement;
      go(card.id);
      card.querySelector(".frame").focus({ preventScroll: true });
    } else if (step) {
      const figures = all("figure:has(.frame)").filter((each) => each === figure || each.checkVisibility());
      const next = figures[figures.indexOf(figure) + step];
      if (next) {
        go(next.id);
        next.querySelector(".close").focus();
      }
    }
  });
})();
