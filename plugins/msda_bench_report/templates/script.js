(() => {
  document.documentElement.classList.add("scripted");
  const PRINTED = 340;  // the width of a chart on paper, of which two stand side by side on A4 or letter
  const [config, paper] = ["config", "paper"].map((id) => document.getElementById(id).textContent);

  // The address holds the state: #anchor&experiment.show=a&experiment.show=b&experiment.sort=books:descending
  let anchor = "", state = new URLSearchParams();

  function readState() {
    const [first, ...rest] = location.hash.slice(1).split("&");
    anchor = first;
    state = new URLSearchParams(rest.join("&"));
  }

  function keep(key, values) {
    state.delete(key);
    for (const value of values) state.append(key, value);
    writeState();
  }

  function writeState() {
    history.replaceState(null, "", `#${[anchor, String(state)].filter((part, place) => part || !place).join("&")}`);
  }

  // ---- the table

  class Experiment {
    constructor(root) {
      this.id = root.dataset.experiment;
      this.section = document.getElementById(this.id);
      this.table = root.querySelector("table");
      this.words = root.querySelector(".filter");
      this.kind = root.querySelector(".kind");
      this.count = root.querySelector(".count");
      this.boxes = all(".choice input", root);
      this.heads = all("thead button", root);
      this.listen(root);
      this.restore();
    }

    listen(root) {
      for (const button of this.heads) button.addEventListener("click", () => this.sortBy(button));
      this.words.addEventListener("input", () => this.filter());
      this.words.addEventListener("keydown", (event) => {
        if (event.key === "Escape") { this.words.value = ""; this.filter(); }
      });
      this.kind.addEventListener("change", () => this.filter());
      for (const box of this.boxes) box.addEventListener("change", () => this.choose());
      for (const button of all("[data-choose]", root)) {
        button.addEventListener("click", () => {
          const wanted = { all: () => true, none: () => false, top: (box) => "top" in box.dataset }[button.dataset.choose];
          for (const box of this.boxes) if (!box.disabled) box.checked = wanted(box);
          this.choose();
        });
      }
    }

    restore() {
      const get = (name) => state.get(`${this.id}.${name}`) ?? "";
      this.words.value = get("filter");
      this.kind.value = get("rows");
      if (this.kind.selectedIndex < 0) this.kind.value = "";
      const chosen = state.has(`${this.id}.show`) && new Set(state.getAll(`${this.id}.show`));
      for (const box of this.boxes) if (!box.disabled) box.checked = chosen ? chosen.has(this.name(box)) : "top" in box.dataset;
      const [, column, direction] = get("sort").match(/^(.*):((?:a|de)scending)$/) ?? [];
      const button = this.heads.find((one) => one.textContent.trim() === column);
      if (button) sort(this.table, button.closest("th").cellIndex, direction);
      this.filter();
    }

    name(box) { return box.closest("tr").dataset.method; }

    shown() { return this.boxes.filter((box) => box.checked).map((box) => this.name(box)); }

    choose() {
      const shown = this.shown();
      const free = this.boxes.filter((box) => box.checked && !box.disabled).map((box) => this.name(box));
      const usual = this.boxes.every((box) => box.checked === "top" in box.dataset);
      keep(`${this.id}.show`, usual ? [] : free.length ? free : [""]);
      for (const figure of figures) if (this.section.contains(figure.root)) figure.show(shown);
      this.tell(`${shown.length} in charts`);
    }

    sortBy(button) {
      const direction = turn(this.table, button);
      keep(`${this.id}.sort`, [`${button.textContent.trim()}:${direction}`]);
      this.tell(`sorted by ${button.textContent.trim()}, ${direction}`);
    }

    filter() {
      const words = this.words.value.toLowerCase().split(/\s+/).filter(Boolean);
      for (const row of this.table.tBodies[0].rows) {
        const known = row.dataset.search.toLowerCase();
        const fits = words.every((word) => known.includes(word));
        row.hidden = !(fits && (this.kind.value === "" || row.dataset.kind.split(" ").includes(this.kind.value)));
      }
      for (const [name, input] of [["filter", this.words], ["rows", this.kind]]) {
        const key = `${this.id}.${name}`;
        if (state.get(key) !== (input.value || null)) keep(key, input.value ? [input.value] : []);
      }
      this.tell("");
    }

    tell(what) {
      const rows = [...this.table.tBodies[0].rows], shown = rows.filter((row) => !row.hidden).length;
      const methods = `${rows.length} method${rows.length === 1 ? "" : "s"}`;
      this.count.textContent = (shown === rows.length ? methods : `${shown} of ${methods}`) + (what && `, ${what}`);
    }
  }

  // ---- charts, drawn when they come into view

  function themed() {
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(name).trim();
    return JSON.parse(config.replaceAll("#010101", colour("--ink")).replaceAll("#020202", colour("--muted"))
      .replaceAll("#030303", colour("--line")));
  }

  // The script that draws, which the first chart unpacks; the page's policy allows it by its hash.
  let library;

  async function unpacked() {
    const packed = Uint8Array.from(atob(document.getElementById("library").textContent), (char) => char.charCodeAt(0));
    const script = document.createElement("script");
    script.textContent = await new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
    document.head.append(script);
  }

  const said = document.getElementById("said");

  class Figure {
    constructor(root) {
      this.root = root;
      this.spec = JSON.parse(root.querySelector('script[type="application/json"]').textContent);
      this.live = root.querySelector(".live");
      this.still = root.querySelector(".still");
      this.view = null;
      if (!this.still) root.querySelector(".values").open = false;  // which stand in for the chart without this script
      for (const button of all("[data-export]", root)) {
        button.addEventListener("click", () => this.download(button.dataset.export));
      }
      const enlarge = root.querySelector("[data-enlarge]");
      enlarge.addEventListener("click", () => {
        enlarge.setAttribute("aria-pressed", String(root.classList.toggle("large")));
        this.draw();
      });
      for (const button of all("[data-zoom]", root)) button.addEventListener("click", () => this.zoom(button.dataset.zoom));
      const plot = root.querySelector(".plot");
      plot.addEventListener("keydown", (event) => this.key(event));
      plot.addEventListener("blur", () => this.leave());
    }

    get parameter() { return (this.spec.params ?? []).find((one) => one.name === "shown"); }

    show(methods) {
      const parameter = this.parameter;
      if (!parameter) return;
      this.all ??= this.known();
      parameter.value = methods.filter((name) => this.all.has(name));
      if (this.view) this.view.signal("shown", parameter.value).runAsync();
    }

    // The methods that the chart has rows of.
    known() {
      const names = new Set();
      for (const rows of Object.values(this.spec.datasets ?? {})) {
        for (const row of rows) if (typeof row.method === "string") names.add(row.method);
      }
      return names;
    }

    sized(widest) {
      const spec = structuredClone(this.spec), room = Math.min(this.root.clientWidth || widest, widest);
      const scale = this.root.classList.contains("large") ? 1.6 : 1;
      if (spec.spec) {  // a column of small charts
        spec.spec.width = Math.max(120, room - 70);
        spec.spec.height *= scale;
      } else if (typeof spec.width === "number") {
        spec.width = room;
        if (typeof spec.height === "number") spec.height *= scale;
        else if (spec.height?.step) spec.height = { step: spec.height.step * scale };
      } else if (spec.width?.step) {
        spec.width = { step: spec.width.step * scale };
        spec.height = { step: (spec.height?.step ?? 26) * scale };
      }
      return spec;
    }

    async embed(host, config, widest = Infinity) {
      await (library ??= unpacked());
      return vegaEmbed(host, this.sized(widest), {
        ast: true, actions: false, defaultStyle: false, renderer: "svg", logLevel: 1, config,
        tooltip: { id: "tip", disableDefaultStyle: true },
        // Said here, since Vega-Lite warns of it where heights follow the number of rows.
        patch: (vega) => typeof this.spec.width === "number" && !this.spec.spec
          ? { ...vega, autosize: { type: "fit-x", contains: "padding" } } : vega,
      });
    }

    async draw(style = themed(), widest = Infinity) {
      this.leave();
      this.live.hidden = false;
      if (this.still) this.still.hidden = true;
      this.result?.finalize();
      try {
        this.result = await this.embed(this.live, style, widest);
        this.view = this.result.view;
        this.root.dataset.drawn = "";
      } catch (error) {  // the still picture, or the numbers, show the same
        this.live.hidden = true;
        if (this.still) this.still.hidden = false;
        else this.root.querySelector(".values").open = true;
        console.error(error);
      }
    }

    // The keys of a chart that has the focus: what the mouse does by pointing, the wheel and dragging.
    key(event) {
      const { key, shiftKey, ctrlKey, metaKey, altKey } = event;
      if (!this.view || ctrlKey || metaKey || altKey) return;
      const way = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 }[key];
      const zoom = shiftKey && way ? (way < 0 ? "left" : "right") : { "+": "in", "=": "in", "-": "out", "0": "whole" }[key];
      if (key === "Escape") this.leave();
      else if (zoom ? this.zoom(zoom) : way && this.step(way)) event.preventDefault();
    }

    // By the ends of the range, so that it does not matter what scale it is.
    zoom(how) {
      const layer = this.spec.layer?.find((one) => one.params?.some(({ name }) => name === "zoom"));
      if (!layer || !this.view) return false;
      const scale = this.view.scale("x"), [low, high] = scale.range(), width = high - low;
      const factor = { in: 2 / 3, out: 3 / 2 }[how] ?? 1, move = { left: -0.2, right: 0.2 }[how] ?? 0;
      const ends = [-1, 1].map((side) => scale.invert((low + high) / 2 + width * (move + side * factor / 2)));
      this.leave();
      this.view.signal(`zoom_${layer.encoding.x.field}`, how === "whole" ? null : ends).runAsync();
      return true;
    }

    // The marks that have values, once each; where rows have names, row by row.
    marks() {
      const found = new Map(), rows = this.spec.layer?.some((one) => one.encoding?.y?.type === "nominal");
      for (const element of all(".live svg path", this.root)) {
        const tip = element.__data__?.tooltip, key = JSON.stringify(tip);
        if (tip && !found.has(key)) found.set(key, { element, tip, box: element.getBoundingClientRect() });
      }
      const middle = (box) => Math.round(box.top + box.height / 2);
      return rows ? [...found.values()].sort((a, b) => middle(a.box) - middle(b.box) || a.box.left - b.box.left)
        : [...found.values()];
    }

    step(way) {
      const marks = this.marks(), before = this.at ?? (way > 0 ? -1 : 0);
      if (!marks.length) return false;
      this.leave();
      this.at = (before + way + marks.length) % marks.length;
      const { element, tip } = marks[this.at];
      element.classList.add("at");
      element.scrollIntoView({ block: "nearest", inline: "nearest" });
      const box = element.getBoundingClientRect();
      const event = { clientX: box.left + box.width / 2, clientY: box.top + box.height / 2 };
      this.view.tooltip()(null, event, element.__data__, tip);
      said.textContent = `${this.at + 1} of ${marks.length}: ${Object.entries(tip).map((one) => one.join(" ")).join(", ")}`;
      return true;
    }

    leave() {
      if (this.at === undefined) return;
      for (const one of all(".at", this.live)) one.classList.remove("at");
      this.view.tooltip()(null, {}, null, null);
      this.at = undefined;
    }

    // Dark on white, whatever the page's theme, and with what is zoomed into.
    async download(kind) {
      if (!this.view) await this.draw();
      const link = document.createElement("a");
      const { view, finalize } = await this.embed(document.createElement("div"), JSON.parse(paper));
      const zoom = { signals: (name) => name.startsWith("zoom_"), data: () => false, recurse: false };
      for (const [name, value] of Object.entries(this.view.getState(zoom).signals)) {
        if (Array.isArray(value) && value.every(Number.isFinite)) view.signal(name, value);  // the ends of an axis
      }
      await view.runAsync();
      link.download = `${this.root.id}.${kind}`;
      link.href = await view.toImageURL(kind, kind === "png" ? 2 : 1);
      finalize();
      document.body.append(link);
      link.click();
      link.remove();
    }
  }

  readState();
  const figures = all("figure[id]").map((root) => new Figure(root));
  const experiments = all(".leaderboard").map((root) => new Experiment(root));
  for (const one of experiments) if (state.has(`${one.id}.show`)) one.choose();
  const waiting = new Map(figures.map((figure) => [figure.root, figure]));
  const watcher = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (!entry.isIntersecting) continue;
      watcher.unobserve(entry.target);
      waiting.get(entry.target).draw();
    }
  }, { rootMargin: "300px" });
  for (const figure of figures) watcher.observe(figure.root);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    for (const figure of figures) if (figure.view) figure.draw();
  });

  let room = innerWidth, resized;
  addEventListener("resize", () => {
    clearTimeout(resized);
    if (innerWidth === room) return;  // phones resize when their bars come and go
    resized = setTimeout(() => {
      room = innerWidth;
      for (const figure of figures) if (figure.view) figure.draw();
    }, 200);
  });

  // ---- folded parts: a link opens what it leads to, and the address remembers what is open

  function reveal(id) {
    const target = id && document.getElementById(id);
    if (!target) return;
    for (let part = target; part; part = part.parentElement) if (part.tagName === "DETAILS") part.open = true;
    target.scrollIntoView();
  }

  for (const part of all("details.part")) {
    part.addEventListener("toggle", () => {
      keep("open", all("details.part[open]").map((one) => one.id));
    });
  }
  for (const link of all('a[href^="#"]')) {
    link.addEventListener("click", (event) => {
      event.preventDefault();
      anchor = link.getAttribute("href").slice(1);
      writeState();
      reveal(anchor);
      document.getElementById(anchor)?.focus({ preventScroll: true });
    });
  }
  function revealAll() {
    for (const id of state.getAll("open")) {
      const part = document.getElementById(id);
      if (part) part.open = true;
    }
    reveal(anchor);
  }
  revealAll();
  addEventListener("hashchange", () => {
    readState();
    for (const one of experiments) { one.restore(); one.choose(); }
    revealAll();
  });

  // On paper everything is open and drawn, dark on white. Drawing has only promises to wait for, and these are kept
  // before the browser lays out the paper, once the library is there.
  let closed = [];
  if (figures.length) library ??= unpacked();
  addEventListener("beforeprint", () => {
    closed = all("details.part:not([open]), details.notes:not([open])");
    closed.forEach((part) => { part.open = true; });
    for (const figure of figures) figure.draw(JSON.parse(paper), PRINTED);
  });
  addEventListener("afterprint", () => {
    closed.forEach((part) => { part.open = false; });
    for (const figure of figures) watcher.observe(figure.root);  // which draws it again in the page's colours
  });
})();
