(() => {
  document.documentElement.classList.add("scripted");
  const table = document.getElementById("board"), count = document.querySelector(".count");
  const [compare, modality, protocol, methods] = ["compare", "modality", "protocol", "methods"]
    .map((id) => document.getElementById(id));
  const inputs = [compare, modality, protocol, methods].filter(Boolean);
  const heads = all("thead button", table);
  document.getElementById("address").textContent = new URL(".", location).href;

  // The address holds the filters and the order: #modality=text&sort=3:descending
  function restore() {
    const state = new URLSearchParams(location.hash.slice(1));
    for (const input of inputs) {
      input.value = state.get(input.id) ?? "";
      if (input.selectedIndex < 0) input.value = "";
    }
    const [place, direction] = (state.get("sort") ?? "").split(":");
    if (place && heads[place] && ["ascending", "descending"].includes(direction)) {
      sort(table, heads[place].closest("th").cellIndex, direction);
    }
    filter();
  }

  function keep() {
    const state = new URLSearchParams();
    for (const input of inputs) if (input.value) state.set(input.id, input.value);
    const place = heads.findIndex((button) => button.closest("th").getAttribute("aria-sort") !== "none");
    if (place >= 0) state.set("sort", `${place}:${heads[place].closest("th").getAttribute("aria-sort")}`);
    history.replaceState(null, "", `#${state}`);
  }

  function filter() {
    const columns = all("thead [data-column]", table);
    const compared = compare && compare.value !== "all" && (compare.value || "methods");
    const shown = new Set(columns.filter((head) => (!compared || head.dataset.compares === compared)
      && (!modality.value || head.dataset.modality === modality.value)
      && (!protocol.value || head.dataset.protocol.split("|").includes(protocol.value))).map((head) => head.dataset.column));
    for (const cell of all("[data-column]", table)) cell.hidden = !shown.has(cell.dataset.column);
    const words = methods.value.toLowerCase().split(/\s+/).filter(Boolean);
    let rows = 0;
    for (const row of table.tBodies[0].rows) {
      const cells = [...row.cells].filter((cell) => !cell.hidden && cell.querySelector("a"));
      const known = row.dataset.search.toLowerCase();
      row.hidden = !cells.length || !words.every((word) => known.includes(word));
      rows += !row.hidden;
    }
    const of = shown.size === columns.length ? "" : ` of ${columns.length}`;
    count.textContent = `${rows} method${rows === 1 ? "" : "s"} in ${shown.size}${of} experiments`;
  }

  for (const input of inputs) {
    input.addEventListener(input === methods ? "input" : "change", () => { filter(); keep(); });
  }
  for (const button of heads) {
    button.addEventListener("click", () => {
      turn(table, button);
      keep();
    });
  }
  for (const link of all('a[href^="#"]')) {
    link.addEventListener("click", (event) => {
      event.preventDefault();
      const target = document.getElementById(link.hash.slice(1));
      if (target.tagName === "DETAILS") target.open = true;
      target.scrollIntoView();
    });
  }
  addEventListener("hashchange", restore);
  restore();
})();
