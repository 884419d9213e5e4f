// On a phone: scroll the navigation to the current list, fold the filters of a list, and label each cell of a list with
// its column title.
// On every page: close the menu "More" by Escape and by a click elsewhere, and say when the server does not answer and
// the figures are old.
"use strict";

document.querySelector(".ways-bar [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });

const more = document.querySelector(".ways-bar details");
if (more) {
  document.addEventListener("click", (happened) => {
    more.open &&= more.contains(happened.target);
  });
  document.addEventListener("keydown", (happened) => {
    if (happened.key === "Escape" && more.open) {
      more.open = false;
      more.querySelector("summary").focus();
    }
  });
}

if (matchMedia("(max-width: 48rem)").matches) {
  document.querySelectorAll("#changelist-filter details").forEach((one) => one.removeAttribute("open"));
}

const list = document.getElementById("result_list");
if (list) {
  const words = [...list.querySelectorAll("thead th")].map((one) => one.textContent.trim());
  for (const row of list.tBodies[0].rows) {
    [...row.cells].forEach((cell, number) => {
      cell.dataset.what = words[number];
      cell.classList.toggle("stack-none", cell.textContent.trim() === "-");
    });
  }
  list.classList.add("stack");
}

for (const [event, stale] of [
  ["htmx:afterRequest", false],
  ["htmx:sendError", true],
  ["htmx:timeout", true],
  ["htmx:responseError", true],
]) {
  document.addEventListener(event, (happened) => {
    if (stale || happened.detail.successful) {
      document.documentElement.classList.toggle("stale", stale);
    }
  });
}
