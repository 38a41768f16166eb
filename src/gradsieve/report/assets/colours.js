"use strict";
// Colours, symbols and dashes. Never colour alone: each variant also has its own symbol and dash.
// Okabe and Ito's palette, lightened on dark ground; cividis for the heat map.
const PALETTES = {
  light: ["#0072b2", "#d55e00", "#009e73", "#a3568c", "#8a6d00", "#333f4d", "#56b4e9", "#b02020"],
  dark: ["#56b4e9", "#ff9d4d", "#2fd0a0", "#e69ac8", "#f0e442", "#c9d3df", "#9fc5ff", "#ff8f8f"],
};
const CIVIDIS = ["#00204d", "#31446b", "#666970", "#958f78", "#cbba69", "#ffea46"];
const SYMBOLS = [
  "circle",
  "rect",
  "triangle",
  "diamond",
  "pin",
  "roundRect",
  "arrow",
  "emptyCircle",
];
const DASHES = ["solid", "dashed", "dotted", [12, 4, 3, 4]];

// The ninth has the first one's colour: another symbol and dash then tell them apart.
const colourOf = (colours, index) => colours.series[index % colours.series.length];
const markOf = (marks, index) => marks[(index + Math.floor(index / 8)) % marks.length];

function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

function readColours() {
  const style = getComputedStyle(document.documentElement);
  const named = (name) => style.getPropertyValue(`--${name}`).trim();
  return {
    ink: named("ink"),
    quiet: named("quiet"),
    grid: named("grid"),
    card: named("card"),
    line: named("line"),
    safe: named("safe"),
    empty: named("empty"),
    series: PALETTES[isDark() ? "dark" : "light"],
  };
}
