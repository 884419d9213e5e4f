// Draws the hourly chart. The table below it has the same values.
"use strict";

(() => {
  const box = document.querySelector(".chart[data-hours]");
  if (!box || typeof uPlot === "undefined") return;

  const COLOURS = ["--warm", "--calm", "--bad", "--accent-ink", "--quiet-ink"];
  const HEIGHT = 200;
  const EVERY = 60_000;
  let chart = null;
  let told = null;

  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const axis = (more) => ({
    stroke: colour("--ink"),
    grid: { stroke: colour("--line"), width: 1 },
    ticks: { stroke: colour("--line"), width: 1 },
    ...more,
  });

  function draw() {
    if (!told) return;
    if (chart) chart.destroy();
    const series = told.kinds.map((label, place) => ({
      label,
      stroke: colour(COLOURS[place]),
      fill: place < 2 ? `${colour(COLOURS[place])}33` : undefined,
      width: 2,
      points: { show: false },
      paths: uPlot.paths.stepped({ align: 1 }),
    }));
    chart = new uPlot(
      {
        width: Math.max(box.clientWidth, 200),
        height: HEIGHT,
        tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), "Etc/UTC"),
        scales: { y: { range: (_, __, most) => [0, Math.max(most * 1.1, 4)] } },
        axes: [
          axis({ values: "{HH}:{mm}" }),
          axis({ size: 56, values: (_, ticks) => ticks.map((n) => (Number.isInteger(n) ? n.toLocaleString("en") : "")) }),
        ],
        series: [{ label: "from (UTC)", value: "{YYYY}-{MM}-{DD} {HH}:{mm}" }, ...series],
      },
      // The current hour is drawn to its end.
      [[...told.hours, told.hours.at(-1) + 3600], ...told.counts.map((row) => [...row, row.at(-1)])],
      box,
    );
  }

  async function renew() {
    try {
      const answer = await fetch(box.dataset.hours, { headers: { "HX-Request": "true" } });
      if (!answer.ok) return;
      told = await answer.json();
      box.hidden = !told.counts.some((row) => row.some(Boolean));
      if (!box.hidden) draw();
    } catch {
      // The dashboard's figures say that the server does not answer.
    }
  }

  new ResizeObserver(() => chart && chart.setSize({ width: Math.max(box.clientWidth, 200), height: HEIGHT })).observe(box);
  new MutationObserver(draw).observe(document.documentElement, { attributeFilter: ["data-theme"] });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  renew();
  setInterval(renew, EVERY);
})();
