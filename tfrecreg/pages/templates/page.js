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

  const dialog = document.querySelector("dialog");
  if (!dialog) return;
  dialog.querySelector("[data-close]").addEventListener("click", () => { dialog.close(); });
  const place = dialog.querySelector("[data-zoomed]");
  all("figure .frame").forEach((frame) => {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "frame";
    button.setAttribute("aria-label", `Enlarge: ${frame.querySelector("img").alt}`);
    button.append(...frame.childNodes);
    frame.replaceWith(button);
    button.addEventListener("click", () => {
      const large = document.createElement("div");
      large.className = "frame";
      large.append(...[...button.childNodes].map((each) => each.cloneNode(true)));
      const caption = button.closest("figure").querySelector("figcaption").cloneNode(true);
      place.replaceChildren(large, caption);
      dialog.showModal();
    });
  });
})();
