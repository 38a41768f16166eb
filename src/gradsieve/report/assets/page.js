// The page: what is chosen, drawing it, the theme, and news while a run goes on.
(() => {
  const element = (id) => document.getElementById(id);
  const drawn = new Map();
  let data = JSON.parse(element("chart-data").textContent);
  let etag = null;

  function fillSelect(select, entries, preferred) {
    const before = select.value || preferred;
    select.replaceChildren(
      ...entries.map(([value, text]) => {
        const option = document.createElement("option");
        option.value = value;
        option.textContent = text;
        return option;
      }),
    );
    if (entries.some(([value]) => value === before)) select.value = before;
  }

  // Everything that a chart may ask for, from the data and the controls; null without any run.
  function chosen() {
    fillSelect(
      element("experiment"),
      data.experiments.map(({ name }, at) => [String(at), name]),
    );
    element("experiment-control").hidden = data.experiments.length < 2;
    const experiment = data.experiments[Number(element("experiment").value)];
    if (!experiment) return null;
    const networks = [
      ...new Set(experiment.variants.flatMap(({ runs }) => runs.map(({ network }) => network))),
    ];
    networks.sort((one, other) => one.localeCompare(other, undefined, { numeric: true }));
    fillSelect(
      element("network"),
      networks.map((network) => [network, network]),
    );
    const network = element("network").value;
    const rivals = experiment.variants.flatMap((variant, index) =>
      variant.runs.filter((run) => run.network === network).map((run) => ({ variant, index, run })),
    );
    fillSelect(
      element("variant"),
      rivals.map(({ variant, run }, at) => [
        String(at),
        rivals.filter((rival) => rival.variant === variant).length > 1
          ? `${variant.name}, ${run.folder}`
          : variant.name,
      ]),
      String(rivals.findIndex(({ variant }) => variant.sieved)),
    );
    const one = rivals[Number(element("variant").value)];
    return {
      experiment,
      rivals,
      ...one,
      width: document.body.clientWidth,
      raw: element("raw").checked,
      predictionLog: element("prediction-log").checked,
      lossLog: element("loss-log").checked,
    };
  }

  function draw() {
    const choice = chosen();
    for (const section of document.querySelectorAll(".needs-script")) section.hidden = !choice;
    if (!choice) return;
    // One run would be a chart of one dot.
    const runs = choice.experiment.variants.flatMap((variant) => variant.runs);
    element("all-networks").hidden = runs.length < 2;
    const { every } = choice.run.history;
    element("thinning").textContent =
      every > 1 ? `Each point stands for ${every} records of the history.` : "";
    const colours = readColours();
    for (const [name, build] of Object.entries(CHARTS)) {
      const made = build(choice, colours);
      drawn.set(name, made);
      const holder = element(`chart-${name}`);
      element(`figure-${name}`).hidden = Boolean(made.few);
      if (!holder.clientWidth) continue; // hidden: it has no size to draw in
      const chart = echarts.getInstanceByDom(holder) || echarts.init(holder);
      chart.setOption(made.option, { notMerge: true });
      element(`summary-${name}`).textContent = made.summary;
      if (element(`details-${name}`).open) showTable(name);
    }
  }

  function showTable(name) {
    const details = element(`details-${name}`);
    fillTable(
      details.querySelector(".table"),
      element(`heading-${name}`).textContent,
      drawn.get(name).table,
    );
  }

  function applyTheme(theme) {
    if (theme) document.documentElement.dataset.theme = theme;
    element("theme").setAttribute("aria-pressed", String(isDark()));
  }

  // A page from disk may be denied storage: the theme is then not remembered.
  function remembered() {
    try {
      return localStorage.getItem("gradsieve-theme");
    } catch {
      return null;
    }
  }
  function remember(theme) {
    try {
      localStorage.setItem("gradsieve-theme", theme);
    } catch {
      /* not remembered */
    }
  }

  element("theme").hidden = false;
  applyTheme(remembered());
  element("theme").addEventListener("click", () => {
    const theme = isDark() ? "light" : "dark";
    applyTheme(theme);
    remember(theme);
    draw();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    applyTheme(null);
    draw();
  });
  for (const control of document.querySelectorAll("select, input"))
    control.addEventListener("change", draw);
  for (const name of Object.keys(CHARTS)) {
    element(`details-${name}`).addEventListener("toggle", ({ target }) => {
      if (target.open) showTable(name);
    });
  }
  // Sections must be in sight before charts are made: a hidden element has no size.
  draw();
  new ResizeObserver(() => {
    for (const name of Object.keys(CHARTS))
      echarts.getInstanceByDom(element(`chart-${name}`))?.resize();
  }).observe(document.body);

  const source = document.documentElement.dataset.live;
  if (!source) return;
  const state = element("live-state");
  const say = (text) => {
    if (state.textContent !== text) state.textContent = text;
  };
  async function ask() {
    try {
      const answer = await fetch(source, {
        cache: "no-store",
        headers: etag ? { "If-None-Match": etag } : {},
      });
      if (answer.status === 200) {
        etag = answer.headers.get("ETag");
        const news = await answer.json();
        data = news.charts;
        for (const part of ["findings", "settings"]) {
          // HTML that the server escaped; the policy lets no script in it run.
          if (element(part).innerHTML !== news[part]) element(part).innerHTML = news[part];
        }
        draw();
        say(news.state);
      } else if (answer.status !== 304) {
        say(`Live: the server answered ${answer.status}`);
      }
    } catch {
      say("Live: the server does not answer; this is the last that it said");
    }
    setTimeout(ask, 1000);
  }
  ask();
})();
